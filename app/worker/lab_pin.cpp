// Compares, follows and keeps a lab's key.
#include "app/worker/lab_pin.hpp"

#include <algorithm>

#include "app/worker/private_file.hpp"
#include "core/error.hpp"
#include "core/work/limits.hpp"

namespace goblin::worker {

namespace fs = std::filesystem;

namespace {

constexpr const char* file_name = "keys";
constexpr size_t line_bytes = 65;  // a digest in hexadecimal and a newline
// Those of one chain, and older ones.
constexpr size_t most_keys = 2 * limits::lab_keys;

bool among(const std::vector<Digest>& keys, const Digest& key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string short_text(const Digest& key) {
    return key.hex().substr(0, 16);
}

}  // namespace

std::vector<Digest> load_lab_keys(const fs::path& lab_folder, const Digest& lab_key) {
    const auto bytes = read_private_file(lab_folder / file_name, most_keys * line_bytes);
    if (!bytes) return {lab_key};
    const std::string text(bytes->begin(), bytes->end());
    std::vector<Digest> keys;
    for (size_t begin = 0; begin + line_bytes <= text.size(); begin += line_bytes)
        if (const auto key = Digest::from_hex(text.substr(begin, line_bytes - 1)); key) keys.push_back(*key);
    if (keys.empty() || keys.size() * line_bytes != text.size())
        throw Error(
            ErrorKind::input,
            "expected a lab's keys in {}, found something else; restore the file, or remove the folder "
            "and join again with a new link",
            (lab_folder / file_name).string());
    return keys;
}

LabPin::LabPin(fs::path lab_folder, const Digest& lab_key, Log& log)
    : folder_(std::move(lab_folder)), log_(log), keys_(load_lab_keys(folder_, lab_key)) {}

Digest LabPin::key() const {
    const std::lock_guard lock(mutex_);
    return keys_.front();
}

void LabPin::expect(const std::vector<Digest>& shown, const std::string& place) {
    const std::lock_guard lock(mutex_);
    follow(shown, place);
}

void LabPin::learn(const std::vector<Digest>& shown, const std::string& place) {
    const std::lock_guard lock(mutex_);
    follow(shown, place);
    if (std::any_of(shown.begin(), shown.end(), [&](const Digest& key) { return !among(keys_, key); }))
        keep(shown);
}

void LabPin::follow(const std::vector<Digest>& shown, const std::string& place) {
    if (!among(shown, keys_.front()))
        throw Error(ErrorKind::denied,
                    "expected the lab's key {} at {}, or one that is signed by it, found {}; nothing was "
                    "sent; ask the "
                    "lab for a new invitation link",
                    short_text(keys_.front()), place,
                    shown.empty() ? "no certificate" : short_text(shown.front()));
    if (shown.front() == keys_.front()) return;
    const Digest before = keys_.front();
    keep(shown);
    log_.warning("the lab at {} has a new key, {}, signed by the one it had, {}: only the new one counts now",
                 place, short_text(shown.front()), short_text(before));
}

void LabPin::keep(const std::vector<Digest>& shown) {
    std::vector<Digest> keys = shown;
    for (const Digest& key : keys_)
        if (!among(keys, key) && keys.size() < most_keys) keys.push_back(key);
    std::string text;
    for (const Digest& key : keys) text += key.hex() + "\n";
    make_private_folder(folder_);
    write_private_file(folder_ / file_name, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    keys_ = std::move(keys);
}

}  // namespace goblin::worker
