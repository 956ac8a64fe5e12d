// A .npy file is written block by block, appears only when complete, and survives a crash before that.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <csignal>
#include <cstring>
#include <random>
#include <span>
#include <thread>

#include "core/tensor/npy_reader.hpp"
#include "core/tensor/npy_writer.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/npy_files.hpp"

using namespace goblin;

namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::mt19937& random, const TensorSpec& spec) {
    Bytes bytes(spec.size_bytes());
    for (std::byte& byte : bytes)
        byte = static_cast<std::byte>(spec.dtype == DType::boolean ? random() % 2 : random());
    return bytes;
}

Bytes block_of(const Bytes& matrix, int64_t cols, size_t element_bytes, const Block& block) {
    Bytes bytes;
    for (int64_t row = block.row; row < block.row + block.rows; ++row) {
        const auto begin = matrix.begin() + (row * cols + block.col) * static_cast<int64_t>(element_bytes);
        bytes.insert(bytes.end(), begin, begin + block.cols * static_cast<int64_t>(element_bytes));
    }
    return bytes;
}

// Disjoint blocks that cover the matrix, in random order.
std::vector<Block> tiles_of(std::mt19937& random, int64_t rows, int64_t cols) {
    const int64_t tile_rows = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(rows));
    const int64_t tile_cols = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(cols));
    std::vector<Block> tiles;
    for (int64_t row = 0; row < rows; row += tile_rows)
        for (int64_t col = 0; col < cols; col += tile_cols)
            tiles.push_back({row, col, std::min(tile_rows, rows - row), std::min(tile_cols, cols - col)});
    std::shuffle(tiles.begin(), tiles.end(), random);
    return tiles;
}

}  // namespace

class TestNpyWriter : public QObject {
    Q_OBJECT
    QTemporaryDir folder_;
    QString path(const QString& name) const { return folder_.filePath(name); }
    std::filesystem::path file(const QString& name) const { return path(name).toStdString(); }
    QStringList names() const { return QDir(folder_.path()).entryList(QDir::Files); }
    Bytes contents(const QString& name) const {
        const Tensor tensor = NpyReader(file(name)).read_all();
        return {tensor.bytes().begin(), tensor.bytes().end()};
    }

  private slots:
    void cleanup() {
        for (const QString& name : names()) QVERIFY(QFile::remove(path(name)));
    }

    void numpy_reads_what_was_written_in_blocks() {
        std::mt19937 random(1);
        const QTemporaryDir folder;
        for (const DTypeInfo& info : all_dtypes())
            for (const Shape& shape :
                 {Shape{}, Shape{0}, Shape{5}, Shape{1, 1}, Shape{0, 4}, Shape{4, 0}, Shape{37, 53},
                  Shape{1, 1000}, Shape{1000, 1}, Shape{2, 3, 4}, Shape{1, 2, 1, 2, 1, 2, 1, 2}}) {
                const TensorSpec spec{info.dtype, shape};
                std::string stem(info.name);
                for (const int64_t length : shape.dims()) stem += "_" + std::to_string(length);
                const QString base = folder.filePath(QString::fromStdString(stem));
                const Bytes bytes = random_bytes(random, spec);
                write_file(base + ".raw", bytes);
                NpyWriter writer = NpyWriter::create((base + ".npy").toStdString(), "7", spec);
                if (shape.rank() == 2 && shape.elements() > 0)
                    for (const Block& tile : tiles_of(random, shape[0], shape[1]))
                        writer.write_block(tile, block_of(bytes, shape[1], info.size_bytes, tile));
                else
                    writer.write_block(shape.rank() == 2 ? Block{} : Block{0, 0, 1, shape.elements()}, bytes);
                writer.finish();
            }
        QCOMPARE(run_npy_fixtures("check", folder.path()), QString());
    }

    void the_target_appears_only_when_finished() {
        const TensorSpec spec{DType::u8, Shape{2, 2}};
        NpyWriter writer = NpyWriter::create(file("c.npy"), "job12", spec);
        QCOMPARE(names(), QStringList{"c.npy.partial-job12"});
        QCOMPARE(writer.partial(), file("c.npy.partial-job12"));
        writer.write_block({0, 0, 2, 2}, Bytes(4, std::byte{7}));
        writer.sync();
        QCOMPARE(names(), QStringList{"c.npy.partial-job12"});
        const FileIdentity before = writer.identity();
        writer.finish();
        QCOMPARE(names(), QStringList{"c.npy"});
        QCOMPARE(identity_of(file("c.npy"))->inode, before.inode);
        QVERIFY(contents("c.npy") == Bytes(4, std::byte{7}));
    }

    void the_whole_size_is_taken_at_once_and_reads_as_zeros() {
        const NpyWriter writer = NpyWriter::create(file("c.npy"), "1", {DType::f32, Shape{1000, 1000}});
        QCOMPARE(writer.identity().size_bytes, uint64_t{4'000'128});
        struct stat status {};
        QCOMPARE(stat(qPrintable(path("c.npy.partial-1")), &status), 0);
        QVERIFY(status.st_blocks * 512 >= 4'000'000);
        QVERIFY(contents("c.npy.partial-1") == Bytes(4'000'000));
    }

    void elements_start_at_a_multiple_of_64_bytes() {
        NpyWriter::create(file("c.npy"), "1", {DType::f64, Shape{12345, 67}}).finish();
        QCOMPARE(NpyReader(file("c.npy")).header().data_offset_bytes % 64, uint64_t{0});
    }

    void an_existing_target_is_kept_unless_told_otherwise() {
        write_file(path("c.npy"), Bytes(3));
        const TensorSpec spec{DType::u8, Shape{1, 1}};
        VERIFY_REFUSED(NpyWriter::create(file("c.npy"), "1", spec), "expected no file at");
        QCOMPARE(kind_of_error_of([&] { NpyWriter::create(file("c.npy"), "1", spec); }), ErrorKind::usage);
        QCOMPARE(names(), QStringList{"c.npy"});
        NpyWriter writer = NpyWriter::create(file("c.npy"), "1", spec, Existing::replace);
        QCOMPARE(QFileInfo(path("c.npy")).size(), 3);
        writer.finish();
        QCOMPARE(contents("c.npy"), Bytes(1));
    }

    void a_dangling_link_at_the_target_counts_as_existing() {
        std::filesystem::create_symlink("nowhere", file("c.npy"));
        VERIFY_REFUSED(NpyWriter::create(file("c.npy"), "1", {DType::u8, Shape{1, 1}}),
                       "expected no file at");
        std::filesystem::remove(file("c.npy"));
    }

    void a_target_that_appears_meanwhile_is_kept_and_the_result_too() {
        NpyWriter writer = NpyWriter::create(file("c.npy"), "1", {DType::u8, Shape{1, 1}});
        write_file(path("c.npy"), Bytes(3));
        VERIFY_REFUSED(writer.finish(), "found one that appeared meanwhile");
        QCOMPARE(QFileInfo(path("c.npy")).size(), 3);
        QVERIFY(QFile::remove(path("c.npy")));
        writer.finish();
        QCOMPARE(contents("c.npy"), Bytes(1));
    }

    void writing_is_taken_up_again_after_a_crash() {
        const TensorSpec spec{DType::i32, Shape{4, 6}};
        std::mt19937 random(5);
        const Bytes bytes = random_bytes(random, spec);
        const Block upper{0, 0, 2, 6};
        const Block lower{2, 0, 2, 6};
        {
            const NpyWriter writer = NpyWriter::create(file("c.npy"), "1", spec);
            writer.write_block(upper, block_of(bytes, 6, 4, upper));
        }
        std::optional<NpyWriter> writer = NpyWriter::resume(file("c.npy"), "1", spec);
        QVERIFY(writer.has_value());
        writer->write_block(lower, block_of(bytes, 6, 4, lower));
        writer->finish();
        QVERIFY(contents("c.npy") == bytes);
        QVERIFY(!NpyWriter::resume(file("c.npy"), "1", spec).has_value());
    }

    void something_else_is_not_resumed() {
        const TensorSpec spec{DType::i32, Shape{4, 6}};
        NpyWriter::create(file("c.npy"), "1", spec);
        VERIFY_REFUSED(NpyWriter::resume(file("c.npy"), "1", {DType::i32, Shape{4, 7}}),
                       "expected an unfinished file of");
        VERIFY_REFUSED(NpyWriter::resume(file("c.npy"), "1", {DType::f32, Shape{4, 6}}),
                       "with the header of f32[4, 6]");
        QFile::remove(path("c.npy.partial-1"));
        std::filesystem::create_symlink("/dev/null", file("c.npy.partial-1"));
        VERIFY_REFUSED(NpyWriter::resume(file("c.npy"), "1", spec), "give the file itself, not a link to it");
        std::filesystem::remove(file("c.npy.partial-1"));
    }

    void creating_again_starts_from_the_beginning() {
        const TensorSpec spec{DType::u8, Shape{1, 2}};
        NpyWriter::create(file("c.npy"), "1", spec).write_block({0, 0, 1, 2}, Bytes(2, std::byte{9}));
        NpyWriter::create(file("c.npy"), "1", spec).finish();
        QVERIFY(contents("c.npy") == Bytes(2));
    }

    void discarding_leaves_nothing() {
        NpyWriter writer = NpyWriter::create(file("c.npy"), "1", {DType::u8, Shape{1, 1}});
        writer.discard();
        QCOMPARE(names(), QStringList{});
        writer.discard();
    }

    void threads_write_disjoint_blocks_at_once() {
        const TensorSpec spec{DType::f64, Shape{301, 203}};
        std::mt19937 random(3);
        const Bytes bytes = random_bytes(random, spec);
        NpyWriter writer = NpyWriter::create(file("c.npy"), "1", spec);
        const std::vector<Block> tiles = tiles_of(random, 301, 203);
        std::vector<std::thread> threads;
        for (size_t first = 0; first < 4; ++first)
            threads.emplace_back([&, first] {
                for (size_t i = first; i < tiles.size(); i += 4)
                    writer.write_block(tiles[i], block_of(bytes, 203, 8, tiles[i]));
            });
        for (std::thread& thread : threads) thread.join();
        writer.finish();
        QVERIFY(contents("c.npy") == bytes);
    }

    void blocks_outside_the_matrix_are_refused() {
        const NpyWriter writer = NpyWriter::create(file("c.npy"), "1", {DType::u8, Shape{2, 3}});
        for (const Block& block :
             {Block{0, 0, 3, 1}, Block{0, 3, 1, 1}, Block{-1, 0, 1, 1}, Block{1, 1, 1, -1}})
            VERIFY_REFUSED(writer.write_block(block, Bytes(3)), "expected a block within [2, 3]");
    }

    void a_result_beyond_the_limit_on_files_is_refused_at_once() {
        rlimit limit{};
        QCOMPARE(getrlimit(RLIMIT_FSIZE, &limit), 0);
        const rlimit lowered{100'000, limit.rlim_max};
        QCOMPARE(setrlimit(RLIMIT_FSIZE, &lowered), 0);
        const QString message = error_of([&] {
            NpyWriter::create(file("c.npy"), "1", {DType::u8, Shape{200'000}});
        });
        QCOMPARE(setrlimit(RLIMIT_FSIZE, &limit), 0);
        QVERIFY2(message.contains("expected room for 200128 bytes"), qPrintable(message));
        QVERIFY2(message.contains("raise the limit (ulimit -f)"), qPrintable(message));
        QCOMPARE(names(), QStringList{});
    }

    void a_folder_that_is_missing_says_so() {
        VERIFY_REFUSED(NpyWriter::create(file("no/c.npy"), "1", {DType::u8, Shape{1}}),
                       "No such file or directory; check the path");
    }
};

QTEST_GUILESS_MAIN(TestNpyWriter)
#include "test_npy_writer.moc"
