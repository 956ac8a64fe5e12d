// Writes inputs to start fuzzing from: each message with every field and list filled, leaf streams, and
// journals. Made from the descriptions of the messages, so that they follow every change of the protocol.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "app/worker/journal_replay.hpp"
#include "core/work/leaf_stream.hpp"
#include "tests/fuzz/message_kinds.hpp"

using namespace goblin;

namespace {

// Fills one field after the other with something short.
class Filler {
  public:
    template <typename T>
    void field(std::string_view, T& value, uint64_t = 0) {
        fill(value);
    }
    void fill(uint64_t& value) { value = 1; }
    void fill(bool& value) { value = true; }
    void fill(std::string& value) { value = "matmul"; }
    void fill(Bytes& value) { value = {1, 2, 3, 4}; }
    void fill(Digest& value) { value.bytes.fill(7); }
    template <size_t size>
    void fill(FixedBytes<size>& value) {
        value.fill(9);
    }
    template <typename T>
    void fill(std::optional<T>& value) {
        fill(value.emplace());
    }
    template <typename T>
    void fill(std::vector<T>& values) {
        fill(values.emplace_back());
    }
    template <typename T>
    requires std::is_enum_v<T>
    void fill(T& value) { value = T::last; }
    template <typename M>
    requires std::is_class_v<M>
    void fill(M& message) { describe(*this, message); }
};

void write(const std::filesystem::path& path, const Bytes& bytes) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file) throw Error(ErrorKind::io, "expected to write {}, the system refused", path.string());
}

template <typename M>
void write_message(const std::filesystem::path& folder, size_t kind, std::string_view name,
                   const M& message) {
    Bytes input = encode_message(message);
    input.insert(input.begin(), static_cast<uint8_t>(kind));
    write(folder / "fuzz_messages" / fmt::format("{}-{}", kind, name), input);
}

// A task that passes every check: a 2×3 by 3×1 product of inline operands.
TaskMessage product_task() {
    Task task;
    task.contract = contract_version;
    task.graph = product_graph({DType::i8, Shape{2, 3}}, {DType::i8, Shape{3, 1}});
    for (const TensorSpec& spec : task.graph.inputs) {
        const Tensor zeros(spec);
        task.inputs.push_back({tensor_digest({}, zeros), Bytes(zeros.size_bytes())});
    }
    return message_of(task);
}

void write_leaf_stream(const std::filesystem::path& folder, std::string_view name, size_t size_bytes,
                       bool packed) {
    const std::vector<std::byte> blob(size_bytes, std::byte{5});
    Bytes input = {static_cast<uint8_t>(size_bytes), static_cast<uint8_t>(size_bytes >> 8),
                   static_cast<uint8_t>(size_bytes >> 16), 0, 100};
    for (uint64_t leaf = 0; leaf < leaf_count(size_bytes); ++leaf)
        append_leaf(input, std::span(blob).subspan(leaf * leaf_size_bytes, leaf_length(size_bytes, leaf)),
                    packed);
    write(folder / "fuzz_leaf_stream" / name, input);
}

template <typename M>
void add_record(Bytes& journal, worker::JournalKind kind, const M& message) {
    const Bytes encoded = encode_message(message);
    const size_t length = encoded.size() + 1;
    journal.insert(journal.end(), {static_cast<uint8_t>(length), static_cast<uint8_t>(length >> 8),
                                   static_cast<uint8_t>(kind)});
    journal.insert(journal.end(), encoded.begin(), encoded.end());
}

// Of two assignments: one goes through every kind of record that leaves it open, the other up to its end.
void write_journals(const std::filesystem::path& folder) {
    using worker::JournalKind;
    Grant grant;
    Filler().fill(grant);
    grant.task = product_task();
    worker::ComputedMessage computed;
    Filler().fill(computed);
    computed.id = grant.assignment;
    worker::EndedMessage ended;
    Filler().fill(ended);
    ended.id = grant.assignment;
    const worker::IdMessage id{grant.assignment};
    Bytes open;
    add_record(open, JournalKind::granted, grant);
    for (const JournalKind kind : {JournalKind::started, JournalKind::started, JournalKind::halted})
        add_record(open, kind, id);
    write(folder / "fuzz_worker_journal" / "computing", open);
    add_record(open, JournalKind::computed, computed);
    add_record(open, JournalKind::send_asked, id);
    write(folder / "fuzz_worker_journal" / "computed", open);
    add_record(open, JournalKind::spoiled, id);
    add_record(open, JournalKind::ended, ended);
    write(folder / "fuzz_worker_journal" / "ended", open);
    grant.assignment.fill(8);
    add_record(open, JournalKind::granted, grant);
    add_record(open, JournalKind::closed, id);
    write(folder / "fuzz_worker_journal" / "closed", open);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: make_seeds FOLDER\n");
        return 2;
    }
    const std::filesystem::path folder = arguments[1];
    try {
        for_each_message_kind([&](size_t kind, auto message) {
            write_message(folder, kind, "empty", message);
            Filler().fill(message);
            write_message(folder, kind, "full", message);
            if constexpr (std::is_same_v<decltype(message), TaskMessage>)
                write_message(folder, kind, "product", product_task());
        });
        write_journals(folder);
        write_leaf_stream(folder, "empty", 0, false);
        write_leaf_stream(folder, "raw", 300, false);
        write_leaf_stream(folder, "packed", 5000, true);
        write_leaf_stream(folder, "two-leaves", leaf_size_bytes + 10, true);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "make_seeds: %s\n", error.what());
        return 1;
    }
    return 0;
}
