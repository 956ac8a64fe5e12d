// Writes and reads HTTP/1.1 heads and bodies.
#include "app/worker/http_message.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>

#include "core/error.hpp"
#include "core/work/limits.hpp"

namespace goblin::worker {

namespace {

constexpr uint64_t longest_body_bytes = uint64_t{1} << 50;
constexpr int interim_heads_at_most = 8;  // a lab node sends none

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_name(std::string_view a, std::string_view b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

bool is_printable(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

[[noreturn]] void refuse(std::string_view expected) {
    throw Error(ErrorKind::network, "expected {} in the answer, found something else; is this a lab node?",
                expected);
}

uint64_t parse_number(std::string_view text, int base, std::string_view what) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size() ||
        number > longest_body_bytes)
        refuse(what);
    return number;
}

}  // namespace

std::string_view ResponseHead::field(std::string_view name) const {
    for (const HttpField& candidate : fields)
        if (same_name(candidate.name, name)) return candidate.value;
    return {};
}

std::string request_head(std::string_view method, std::string_view target, std::string_view host,
                         std::span<const HttpField> fields) {
    std::string head = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", method, target, host);
    for (const HttpField& field : fields) {
        assert(is_printable(field.name) && is_printable(field.value));
        head += fmt::format("{}: {}\r\n", field.name, field.value);
    }
    assert(head.size() + 2 <= limits::header_bytes);
    return head + "\r\n";
}

size_t ResponseReader::add(std::span<const uint8_t> piece) {
    size_t taken = 0;
    began_ = began_ || !piece.empty();
    while (taken < piece.size() && stage_ != Stage::complete) {
        const auto rest = piece.subspan(taken);
        const bool in_body = stage_ == Stage::sized_body || stage_ == Stage::chunk_body;
        taken += in_body ? take_body(rest) : take_line(rest);
    }
    return taken;
}

size_t ResponseReader::take_body(std::span<const uint8_t> piece) {
    const size_t size = static_cast<size_t>(std::min<uint64_t>(piece.size(), remaining_));
    sink_.body(piece.first(size));
    remaining_ -= size;
    if (remaining_ == 0) stage_ = stage_ == Stage::sized_body ? Stage::complete : Stage::chunk_end;
    return size;
}

size_t ResponseReader::take_line(std::span<const uint8_t> piece) {
    const auto end = std::find(piece.begin(), piece.end(), uint8_t{'\n'});
    const size_t size = static_cast<size_t>(end - piece.begin()) + (end == piece.end() ? 0 : 1);
    head_size_ += size;
    if (head_size_ > limits::header_bytes) refuse("a head of at most 16 KiB");
    line_.append(reinterpret_cast<const char*>(piece.data()), size);
    if (end == piece.end()) return size;
    line_.pop_back();
    if (line_.empty() || line_.back() != '\r') refuse("lines that end with CR LF");
    line_.pop_back();
    line_complete();
    line_.clear();
    return size;
}

void ResponseReader::line_complete() {
    const std::string_view line = line_;
    switch (stage_) {
        case Stage::head:
            if (head_.status == 0) {
                const bool fits = line.size() >= 12 && line.starts_with("HTTP/1.1 ") &&
                                  (line.size() == 12 || line[12] == ' ');
                if (!fits) refuse("'HTTP/1.1' and a status");
                head_.status =
                    static_cast<int>(parse_number(line.substr(9, 3), 10, "a status of three digits"));
                if (head_.status < 100) refuse("a status from 100 to 999");
            } else if (!line.empty()) {
                const size_t colon = line.find(':');
                if (colon == 0 || colon == std::string_view::npos)
                    refuse("a name and a colon in each line of the head");
                head_.fields.push_back(
                    {std::string(line.substr(0, colon)), std::string(trimmed(line.substr(colon + 1)))});
            } else {
                head_complete();
            }
            return;
        case Stage::chunk_size:
            start_chunk();
            return;
        case Stage::chunk_end:
            if (!line.empty()) refuse("the end of a chunk");
            stage_ = Stage::chunk_size;
            return;
        case Stage::trailer:
            if (line.empty()) stage_ = Stage::complete;
            return;
        default:
            assert(false && "bodies are not read by lines");
    }
}

void ResponseReader::head_complete() {
    head_size_ = 0;
    if (head_.status < 200) {
        if (++interim_heads_ > interim_heads_at_most) refuse("at most 8 interim responses");
        head_ = {};
        return;
    }
    for (const HttpField& field : head_.fields) {
        if (same_name(field.name, "content-length")) {
            const uint64_t length = parse_number(field.value, 10, "a Content-Length in digits");
            if (head_.content_length && *head_.content_length != length) refuse("one Content-Length");
            head_.content_length = length;
        } else if (same_name(field.name, "transfer-encoding")) {
            if (!same_name(field.value, "chunked")) refuse("no transfer encoding but 'chunked'");
            head_.chunked = true;
        } else if (same_name(field.name, "connection") && same_name(field.value, "close")) {
            head_.keep_alive = false;
        }
    }
    const bool no_body = without_body_ || head_.status == 204 || head_.status == 304;
    if (!no_body && !head_.chunked && !head_.content_length) refuse("a Content-Length");
    if (head_.chunked && head_.content_length) refuse("either a Content-Length or chunks");
    sink_.head(head_);
    if (no_body) {
        stage_ = Stage::complete;
    } else if (head_.chunked) {
        stage_ = Stage::chunk_size;
    } else {
        remaining_ = *head_.content_length;
        stage_ = remaining_ == 0 ? Stage::complete : Stage::sized_body;
    }
}

void ResponseReader::start_chunk() {
    head_size_ = 0;
    const std::string_view line = line_;
    remaining_ = parse_number(trimmed(line.substr(0, line.find(';'))), 16, "a chunk's size");
    stage_ = remaining_ == 0 ? Stage::trailer : Stage::chunk_body;
}

}  // namespace goblin::worker
