// Every limit of the protocol and of stored work, in one table; both sides of the network enforce them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace goblin {

// name, value, unit, what it bounds
#define GOBLIN_LIMITS(X)                                                                                  \
    X(cbor_depth, 16, "levels", "nesting of a message")                                                   \
    X(exchange_bytes, 16u << 20, "bytes", "one exchange's body, in either direction")                     \
    X(exchange_results, 1024, "results", "results in one exchange")                                       \
    X(inline_tensor_bytes, 64u << 10, "bytes", "a tensor that rides inside an exchange")                  \
    X(small_body_bytes, 64u << 10, "bytes", "body of every other request that is no blob")                \
    X(header_bytes, 16u << 10, "bytes", "head of an HTTP request")                                        \
    X(header_ms, 10'000, "ms", "time for the head of an HTTP request to arrive")                          \
    X(minimum_body_rate, 1u << 10, "bytes/s", "slowest body that is still read")                          \
    X(connections_per_address, 64, "connections", "open connections from one address")                    \
    X(connections_total, 4096, "connections", "open connections altogether")                              \
    X(open_assignments, 256, "assignments", "open assignments of one computer")                           \
    X(held_blobs, 4096, "blobs", "blobs a computer tells about")                                          \
    X(zstd_window_bytes, 8u << 20, "bytes", "memory that unpacking a leaf may take")                      \
    X(task_inputs, 1024, "tensors", "inputs of one task")                                                 \
    X(task_outputs, 64, "tensors", "outputs of one task")                                                 \
    X(devices, 64, "devices", "devices of one computer")                                                  \
    X(lab_keys, 8, "keys", "a lab's keys, each signed by the one before")                                 \
    X(name_characters, 64, "characters", "names of labs and computers")                                   \
    X(text_bytes, 1024, "bytes", "reasons and notices in messages")                                       \
    X(free_disk_floor_bytes, uint64_t{2} << 30, "bytes", "free disk below which nothing is issued")       \
    X(free_disk_floor_percent, 5, "%", "the same as a share of the disk; the smaller of the two decides") \
    X(upload_idle_ms, 86'400'000, "ms", "an unfinished upload that nobody goes on with is kept")          \
    X(slow_link_rate, 256u << 10, "bytes/s", "link that durations of assignments allow for")              \
    X(exchange_wait_ms, 30'000, "ms", "an exchange waits for work at the lab node")                       \
    X(silence_ms, 60'000, "ms", "silence after which a connection counts as lost")                        \
    X(task_target_ms, 60'000, "ms", "time a task should take on the computer that takes it")              \
    X(task_longest_ms, 600'000, "ms", "time a task may take at most: nothing is checkpointed")

namespace limits {
#define GOBLIN_LIMIT_CONSTANT(name, value, unit, what) inline constexpr uint64_t name = value;
GOBLIN_LIMITS(GOBLIN_LIMIT_CONSTANT)
#undef GOBLIN_LIMIT_CONSTANT
}  // namespace limits

struct LimitInfo {
    std::string_view name;
    uint64_t value;
    std::string_view unit;
    std::string_view what;
};
std::span<const LimitInfo> all_limits();

}  // namespace goblin
