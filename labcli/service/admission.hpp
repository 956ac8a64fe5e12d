// Who may take how much of the service: connections, memory for bodies and blob transfers, altogether and per
// address.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "labcli/service/service_limits.hpp"

namespace goblin::lab {

enum class Resource : uint8_t { connection, buffered_byte, transfer };
inline constexpr size_t resource_kinds = 3;

class Admission {
  public:
    explicit Admission(const ServiceLimits& limits);

    // A share of a resource, given back by its destructor. May be given up on any thread; the Admission must
    // live longer.
    class Share {
      public:
        Share() = default;
        Share(Share&& other) noexcept { swap(other); }
        Share& operator=(Share&& other) noexcept {
            swap(other);
            return *this;
        }
        ~Share();

      private:
        friend class Admission;
        void swap(Share& other) noexcept;

        Admission* admission_ = nullptr;
        Resource resource_ = Resource::connection;
        std::string key_;
        uint64_t amount_ = 0;
    };

    // Nothing when all, or this address's part, is taken. `address` is textual.
    std::optional<Share> take(Resource resource, const std::string& address, uint64_t amount);
    // Also beyond what is there: for what exists already. It counts against those who ask later.
    Share take_anyway(Resource resource, const std::string& address, uint64_t amount);
    // Adds to a share of the same resource and address.
    bool grow(Share& share, uint64_t amount);
    uint64_t taken(Resource resource) const;

  private:
    struct Bound {
        uint64_t total;
        uint64_t per_address;
    };
    using Counts = std::array<uint64_t, resource_kinds>;

    Share share_of(Resource resource, const std::string& address, uint64_t amount);
    bool count(Resource resource, const std::string& key, uint64_t amount);
    void count_anyway(Resource resource, const std::string& key, uint64_t amount);
    void give_back(Resource resource, const std::string& key, uint64_t amount);

    std::array<Bound, resource_kinds> bounds_;
    mutable std::mutex mutex_;
    Counts totals_{};
    std::map<std::string, Counts> by_address_;  // no entry without a share
};

// What counts as one address: an IPv4 address; of an IPv6 address the /64, which one household or machine
// owns whole.
std::string address_key(const std::string& address);

}  // namespace goblin::lab
