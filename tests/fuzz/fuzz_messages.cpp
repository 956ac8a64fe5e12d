// Any bytes as a message: refused by an Error, or a message whose one way to be written they are.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/error.hpp"
#include "tests/fuzz/message_kinds.hpp"
#include "tests/fuzz/require.hpp"

using namespace goblin;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::span<const uint8_t> input(data + 1, size - 1);
    try {
        (void)leading_versions(input);
    } catch (const Error&) {
    }
    for_each_message_kind([&](size_t kind, auto message) {
        if (data[0] != kind) return;
        try {
            message = decode_message<decltype(message)>(input);
        } catch (const Error&) {
            return;
        }
        REQUIRE(std::ranges::equal(encode_message(message), input));
        if constexpr (std::is_same_v<decltype(message), TaskMessage>) {
            try {
                const Task task = task_of(message);
                REQUIRE(task.inputs.size() == task.graph.inputs.size());
                REQUIRE(std::ranges::equal(encode_message(message_of(task)), input));
            } catch (const Error&) {
            }
        }
    });
    return 0;
}
