// Creates, fills, resumes and renames the unfinished file.
#include "core/tensor/npy_writer.hpp"

#include <cassert>
#include <string>
#include <system_error>

#include "core/error.hpp"
#include "core/tensor/npy_header.hpp"

namespace goblin {

namespace {

void require_absent(const std::filesystem::path& target, Existing existing) {
    if (existing == Existing::refuse && std::filesystem::exists(std::filesystem::symlink_status(target)))
        throw Error(ErrorKind::usage, "expected no file at {}, found one; choose another name or remove it",
                    target.string());
}

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

}  // namespace

std::filesystem::path npy_partial_path(const std::filesystem::path& target, std::string_view tag) {
    assert(!tag.empty() && tag.find('/') == std::string_view::npos);
    std::filesystem::path partial = target;
    partial += ".partial-";
    partial += tag;
    return partial;
}

NpyWriter::NpyWriter(File file, std::filesystem::path target, const TensorSpec& spec, Existing existing)
    : file_(std::move(file)),
      target_(std::move(target)),
      spec_(spec),
      existing_(existing),
      data_offset_bytes_(make_npy_header(spec).size()),
      rows_(spec.shape.rank() == 2 ? spec.shape[0] : 1),
      cols_(spec.shape.rank() == 2 ? spec.shape[1] : spec.shape.elements()) {}

NpyWriter NpyWriter::create(const std::filesystem::path& target, std::string_view tag, const TensorSpec& spec,
                            Existing existing) {
    require_absent(target, existing);
    const std::filesystem::path partial = npy_partial_path(target, tag);
    remove_file(partial);
    NpyWriter writer(File::create(partial), target, spec, existing);
    try {
        const std::string header = make_npy_header(spec);
        writer.file_.preallocate(header.size() + spec.size_bytes());
        writer.file_.write_at(0, bytes_of(header));
        writer.file_.sync();
        sync_folder(partial.parent_path());
    } catch (const Error&) {
        std::error_code ignored;  // the reason why it failed matters more
        std::filesystem::remove(partial, ignored);
        throw;
    }
    return writer;
}

std::optional<NpyWriter> NpyWriter::resume(const std::filesystem::path& target, std::string_view tag,
                                           const TensorSpec& spec, Existing existing) {
    const std::filesystem::path partial = npy_partial_path(target, tag);
    if (!std::filesystem::exists(std::filesystem::symlink_status(partial))) return std::nullopt;
    NpyWriter writer(File::open_to_write(partial), target, spec, existing);
    const std::string expected = make_npy_header(spec);
    const uint64_t expected_bytes = expected.size() + spec.size_bytes();
    const uint64_t found_bytes = writer.identity().size_bytes;
    if (found_bytes != expected_bytes)
        throw Error(ErrorKind::input,
                    "expected an unfinished file of {} bytes for {} at {}, found {} bytes; remove it and "
                    "compute again",
                    expected_bytes, spec.text(), partial.string(), found_bytes);
    std::string found(expected.size(), '\0');
    writer.file_.read_at(0, std::as_writable_bytes(std::span(found)));
    if (found != expected)
        throw Error(ErrorKind::input,
                    "expected an unfinished file with the header of {} at {}, found another; remove it and "
                    "compute again",
                    spec.text(), partial.string());
    return writer;
}

void NpyWriter::write_block(const Block& block, std::span<const std::byte> source) const {
    const auto element_bytes = static_cast<uint64_t>(size_of(spec_.dtype));
    if (!block.fits(rows_, cols_))
        throw Error(ErrorKind::usage,
                    "{}: expected a block within [{}, {}], found {} × {} at row {}, column {}",
                    target_.string(), rows_, cols_, block.rows, block.cols, block.row, block.col);
    const uint64_t piece_bytes = static_cast<uint64_t>(block.cols) * element_bytes;
    const uint64_t line_bytes = static_cast<uint64_t>(cols_) * element_bytes;
    assert(source.size() == static_cast<uint64_t>(block.rows) * piece_bytes);
    if (source.size() != static_cast<uint64_t>(block.rows) * piece_bytes)
        throw Error(ErrorKind::usage, "{}: expected {} bytes for a block, found {}", target_.string(),
                    static_cast<uint64_t>(block.rows) * piece_bytes, source.size());
    if (source.empty()) return;
    uint64_t to = data_offset_bytes_ + static_cast<uint64_t>(block.row) * line_bytes +
                  static_cast<uint64_t>(block.col) * element_bytes;
    if (piece_bytes == line_bytes) return file_.write_at(to, source);
    for (; !source.empty(); to += line_bytes, source = source.subspan(piece_bytes))
        file_.write_at(to, source.first(piece_bytes));
}

void NpyWriter::finish() {
    file_.sync();
    if (!rename_file(partial(), target_, existing_))
        throw Error(
            ErrorKind::usage,
            "expected no file at {0}, found one that appeared meanwhile; the result is complete in {1}: move "
            "the other file away, then type: mv {1} {0}",
            target_.string(), partial().string());
    sync_folder(target_.parent_path());
}

void NpyWriter::discard() {
    remove_file(partial());
}

}  // namespace goblin
