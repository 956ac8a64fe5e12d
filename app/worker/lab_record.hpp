// What a worker keeps about a lab that it joined: labs/KEY/lab.json.
#pragma once

#include <filesystem>
#include <optional>

#include "app/worker/lab_address.hpp"
#include "core/work/exchange.hpp"

namespace goblin::worker {

struct LabRecord {
    LabAddress address;
    std::string name;
    std::string computes;
    std::string contact;
    std::optional<Credential> credential;  // none: the lab no longer knows this computer
    std::optional<Digest> joined_by;       // SHA-256 of the token that the credential was given for
};

// Empty when there is none. Throws ErrorKind::input for a damaged one, ErrorKind::io.
std::optional<LabRecord> load_lab_record(const std::filesystem::path& lab_folder, const Digest& lab_key);
// Throws ErrorKind::io.
void save_lab_record(const std::filesystem::path& lab_folder, const LabRecord& record);

}  // namespace goblin::worker
