// Small private files: read within a limit, written so that a crash leaves either the old or the new
// contents.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

namespace goblin::worker {

// Empty when there is no file. Throws ErrorKind::input when it is longer than `limit_bytes`, ErrorKind::io.
std::optional<std::vector<uint8_t>> read_private_file(const std::filesystem::path& path,
                                                      uint64_t limit_bytes);

// Readable by the owner alone. On the disk when it returns. Throws ErrorKind::io.
void write_private_file(const std::filesystem::path& path, std::span<const uint8_t> bytes);

// Makes the folder (and those above it) for the owner alone. Throws ErrorKind::io.
void make_private_folder(const std::filesystem::path& path);

}  // namespace goblin::worker
