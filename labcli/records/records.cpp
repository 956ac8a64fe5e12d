// Ids of assignments.
#include "labcli/records/records.hpp"

#include <cstring>

#include "core/work/identity.hpp"

namespace goblin::lab {

namespace {
constexpr size_t number_bytes = 6;
}

AssignmentId make_assignment_id(AssignmentNumber number) {
    auto id = random_bytes<AssignmentId>();
    for (size_t i = 0; i < number_bytes; ++i) id[i] = static_cast<uint8_t>(number >> (8 * i));
    return id;
}

AssignmentNumber number_of(const AssignmentId& id) {
    AssignmentNumber number = 0;
    for (size_t i = 0; i < number_bytes; ++i) number |= AssignmentNumber{id[i]} << (8 * i);
    return number;
}

size_t AssignmentIdHash::operator()(const AssignmentId& id) const {
    size_t hash = 0;
    std::memcpy(&hash, id.data() + number_bytes, sizeof hash);
    return hash;
}

}  // namespace goblin::lab
