// Every message that arrives from the network, numbered: the first byte of a fuzzed input chooses one.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include "core/work/exchange.hpp"

namespace goblin {

using MessageKinds =
    std::tuple<ExchangeRequest, ExchangeReply, EnrolRequest, EnrolReply, LabInfo, ErrorReply, TaskMessage>;

// visit(kind number, message of that kind) for each.
template <typename Visit>
void for_each_message_kind(Visit visit) {
    [&]<size_t... kinds>(std::index_sequence<kinds...>) {
        (visit(kinds, std::tuple_element_t<kinds, MessageKinds>{}), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<MessageKinds>>{});
}

}  // namespace goblin
