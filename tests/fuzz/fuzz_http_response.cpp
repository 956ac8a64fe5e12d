// Any bytes as a lab node's response: refused, or read the same whether they come at once or in pieces.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "app/worker/http_message.hpp"
#include "core/error.hpp"
#include "tests/fuzz/require.hpp"

using namespace goblin;
using namespace goblin::worker;

namespace {

struct Heard {
    bool refused = false;
    bool complete = false;
    size_t used_bytes = 0;
    std::optional<ResponseHead> head;
    std::vector<uint8_t> body;
};

Heard hear(std::span<const uint8_t> bytes, size_t piece_bytes, bool without_body) {
    Heard heard;
    ResponseReader reader(without_body, {[&](const ResponseHead& head) {
                                             REQUIRE(!heard.head);
                                             REQUIRE(head.status >= 200 && head.status <= 999);
                                             heard.head = head;
                                         },
                                         [&](std::span<const uint8_t> piece) {
                                             REQUIRE(heard.head && !without_body);
                                             heard.body.insert(heard.body.end(), piece.begin(), piece.end());
                                         }});
    try {
        while (heard.used_bytes < bytes.size() && !reader.complete()) {
            const auto piece =
                bytes.subspan(heard.used_bytes).first(std::min(piece_bytes, bytes.size() - heard.used_bytes));
            const size_t used = reader.add(piece);
            REQUIRE(used == piece.size() || (used < piece.size() && reader.complete()));
            heard.used_bytes += used;
        }
    } catch (const Error& error) {
        REQUIRE(error.kind() == ErrorKind::network);
        heard.refused = true;
    }
    heard.complete = reader.complete();
    return heard;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const bool without_body = data[0] % 2 != 0;
    const size_t piece_bytes = 1 + data[0] / 2;
    const std::span<const uint8_t> bytes(data + 1, size - 1);
    const Heard whole = hear(bytes, bytes.size(), without_body);
    const Heard pieces = hear(bytes, piece_bytes, without_body);
    REQUIRE(whole.refused == pieces.refused && whole.complete == pieces.complete);
    REQUIRE(whole.head.has_value() == pieces.head.has_value());
    REQUIRE(whole.body == pieces.body);
    if (!whole.refused) REQUIRE(whole.used_bytes == pieces.used_bytes);
    if (whole.complete) REQUIRE(whole.head);
    if (whole.complete && whole.head->content_length && !without_body && !whole.head->chunked)
        REQUIRE(whole.body.size() == *whole.head->content_length || whole.head->status == 204 ||
                whole.head->status == 304);
    if (whole.head) {
        for (const HttpField& field : whole.head->fields)
            REQUIRE(field.value.find('\n') == std::string::npos &&
                    field.name.find('\n') == std::string::npos);
    }
    return 0;
}
