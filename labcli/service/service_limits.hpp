// What the service allows its peers: the protocol's limits and its own. Tests shorten the times.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/work/limits.hpp"

namespace goblin::lab {

struct ServiceLimits {
    uint64_t header_bytes = limits::header_bytes;
    uint64_t exchange_bytes = limits::exchange_bytes;
    uint64_t small_body_bytes = limits::small_body_bytes;
    uint64_t exchange_wait_ms = limits::exchange_wait_ms;
    uint64_t connections_per_address = limits::connections_per_address;  // an IPv6 address counts as its /64
    uint64_t connections_total = limits::connections_total;

    uint64_t handshake_ms = 10'000;             // from the connection to the end of the TLS handshake
    uint64_t header_ms = limits::header_ms;     // from a request's first byte to the end of its head
    uint64_t idle_ms = 2 * limits::silence_ms;  // between two requests of one connection
    uint64_t silence_ms = limits::silence_ms;   // without a byte inside a body, in either direction
    uint64_t rate_grace_ms = 10'000;            // before the minimum rate counts
    uint64_t minimum_body_rate =
        limits::minimum_body_rate;  // bytes a second, on average over a body, both directions
    uint64_t answer_ms = limits::exchange_wait_ms + limits::silence_ms;  // for the lab to answer the service
    uint64_t linger_ms = 1'000;  // after a refusal, for the peer to read it
    uint64_t stop_ms = 1'500;    // for open requests to be answered when the service stops

    // Bodies and replies held in memory, over all connections; the first 64 KiB of a body are free, and one
    // address may take a quarter. A reply exists already and is only counted; bodies have to wait.
    uint64_t buffered_bytes = uint64_t{128} << 20;
    // Blob transfers at a time, each with two leaves in memory; one address may take a quarter.
    uint64_t transfers = 64;
    // Reads and writes that wait for a disk.
    uint64_t blob_jobs = 1'024;
};

}  // namespace goblin::lab
