// Reads refusals by the table below.
#include "app/worker/lab_refusal.hpp"

#include <charconv>

#include "core/error.hpp"
#include "core/work/exchange.hpp"
#include "core/work/plain_text.hpp"

namespace goblin::worker {

namespace {

struct RefusalRow {
    std::string_view code;  // empty: by status alone
    int status;             // 0: by code alone
    RefusalAction action;
    std::string_view next_step;  // what the lab's own text doesn't say
};

// The first row that fits counts.
constexpr RefusalRow rows[] = {
    {"version", 0, RefusalAction::update, "the worker asks again every hour"},
    {"credential", 0, RefusalAction::forget, ""},
    {"copied", 0, RefusalAction::stop, ""},
    {"banned", 0, RefusalAction::stop, ""},
    {"pending", 0, RefusalAction::wait_for_lab, ""},
    {"token", 0, RefusalAction::stop, ""},
    {"signature", 0, RefusalAction::stop, "update this program or the lab node"},
    {"nonce", 0, RefusalAction::try_again, ""},
    {"rate", 0, RefusalAction::try_again, ""},
    {"busy", 0, RefusalAction::try_again, ""},
    {"blob", 0, RefusalAction::drop_blob, ""},
    {"unasked", 0, RefusalAction::drop_blob, ""},
    {"complete", 0, RefusalAction::drop_blob, ""},
    {"", 401, RefusalAction::forget, "the lab no longer knows this computer: join again with a new link"},
    {"", 426, RefusalAction::update, "the worker asks again every hour"},
    {"", 404, RefusalAction::drop_blob, ""},
    {"", 403, RefusalAction::drop_blob, ""},
    {"", 410, RefusalAction::drop_blob, ""},
    {"", 0, RefusalAction::try_again, ""},
};

const RefusalRow& row_of(int status, std::string_view code) {
    for (const RefusalRow& row : rows) {
        const bool code_fits = row.code.empty() || row.code == code;
        const bool status_fits = row.status == 0 || row.status == status;
        if (code_fits && status_fits) return row;
    }
    return rows[std::size(rows) - 1];
}

uint64_t seconds_as_ms(std::string_view text) {
    uint32_t seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    return error == std::errc{} && end == text.data() + text.size() ? uint64_t{seconds} * 1'000 : 0;
}

}  // namespace

LabRefusal refusal_of(const ResponseHead& head, std::span<const uint8_t> body) {
    LabRefusal refusal;
    refusal.status = head.status;
    try {
        const auto reply = decode_message<ErrorReply>(body);
        refusal.code = plain_text(reply.code, limits::name_characters);
        refusal.message = plain_text(reply.message);
    } catch (const Error&) {
        refusal.message =
            head.status >= 300 && head.status < 400
                ? "the lab's address redirects elsewhere, which is never followed; ask the lab "
                  "whether its address has changed"
                : fmt::format("the lab answered with HTTP status {} and no reason", head.status);
    }
    refusal.retry_after_ms = seconds_as_ms(head.field("Retry-After"));
    refusal.action = row_of(refusal.status, refusal.code).action;
    return refusal;
}

std::string LabRefusal::text() const {
    const std::string_view next_step = row_of(status, code).next_step;
    return next_step.empty() ? message : fmt::format("{}; {}", message, next_step);
}

}  // namespace goblin::worker
