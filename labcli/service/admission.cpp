// Counts shares of the service's resources.
#include "labcli/service/admission.hpp"

#include <arpa/inet.h>

#include <array>
#include <cassert>

#include "core/work/hex.hpp"

namespace goblin::lab {

namespace {

constexpr uint64_t largest_part = 4;  // one address gets at most a quarter of what all share

size_t index_of(Resource resource) {
    return static_cast<size_t>(resource);
}

}  // namespace

std::string address_key(const std::string& address) {
    std::array<uint8_t, 16> bytes{};
    const std::string plain =
        address.substr(0, address.find('%'));  // a link-local address names its interface
    if (inet_pton(AF_INET6, plain.c_str(), bytes.data()) != 1) return address;
    return to_hex(std::span(bytes).first(8));
}

Admission::Admission(const ServiceLimits& limits)
    : bounds_{{{limits.connections_total, limits.connections_per_address},
               {limits.buffered_bytes, limits.buffered_bytes / largest_part},
               {limits.transfers, std::max<uint64_t>(1, limits.transfers / largest_part)}}} {}

bool Admission::count(Resource resource, const std::string& key, uint64_t amount) {
    const size_t index = index_of(resource);
    const Bound& bound = bounds_[index];
    const std::lock_guard lock(mutex_);
    const auto found = by_address_.find(key);
    const uint64_t used = found == by_address_.end() ? 0 : found->second[index];
    if (totals_[index] > bound.total || amount > bound.total - totals_[index]) return false;
    if (used > bound.per_address || amount > bound.per_address - used) return false;
    by_address_[key][index] += amount;
    totals_[index] += amount;
    return true;
}

void Admission::count_anyway(Resource resource, const std::string& key, uint64_t amount) {
    const size_t index = index_of(resource);
    const std::lock_guard lock(mutex_);
    by_address_[key][index] += amount;
    totals_[index] += amount;
}

void Admission::give_back(Resource resource, const std::string& key, uint64_t amount) {
    const size_t index = index_of(resource);
    const std::lock_guard lock(mutex_);
    const auto found = by_address_.find(key);
    assert(found != by_address_.end() && found->second[index] >= amount && totals_[index] >= amount);
    found->second[index] -= amount;
    totals_[index] -= amount;
    if (found->second == Counts{}) by_address_.erase(found);
}

Admission::Share Admission::share_of(Resource resource, const std::string& address, uint64_t amount) {
    Share share;
    share.admission_ = this;
    share.resource_ = resource;
    share.key_ = address_key(address);
    share.amount_ = amount;
    return share;
}

std::optional<Admission::Share> Admission::take(Resource resource, const std::string& address,
                                                uint64_t amount) {
    if (amount > 0 && !count(resource, address_key(address), amount)) return std::nullopt;
    return share_of(resource, address, amount);
}

Admission::Share Admission::take_anyway(Resource resource, const std::string& address, uint64_t amount) {
    if (amount > 0) count_anyway(resource, address_key(address), amount);
    return share_of(resource, address, amount);
}

bool Admission::grow(Share& share, uint64_t amount) {
    assert(share.admission_ == this);
    if (!count(share.resource_, share.key_, amount)) return false;
    share.amount_ += amount;
    return true;
}

uint64_t Admission::taken(Resource resource) const {
    const std::lock_guard lock(mutex_);
    return totals_[index_of(resource)];
}

void Admission::Share::swap(Share& other) noexcept {
    std::swap(admission_, other.admission_);
    std::swap(resource_, other.resource_);
    std::swap(key_, other.key_);
    std::swap(amount_, other.amount_);
}

Admission::Share::~Share() {
    if (admission_ && amount_ > 0) admission_->give_back(resource_, key_, amount_);
}

}  // namespace goblin::lab
