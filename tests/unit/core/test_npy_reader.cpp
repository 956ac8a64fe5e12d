// Any part of a .npy file is read as the same row-major elements, whatever the file's order.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QtTest>
#include <cstring>
#include <random>
#include <span>

#include "core/tensor/npy_reader.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/npy_files.hpp"

using namespace goblin;

namespace {

using Bytes = std::vector<std::byte>;

// A file in either order and byte order, made without NumPy: its elements are random bytes.
struct Matrix {
    DType dtype = DType::f32;
    int64_t rows = 0;
    int64_t cols = 0;
    bool fortran = false;
    bool big_endian = false;
    Bytes row_major;

    size_t element_bytes() const { return size_of(dtype); }
    Bytes block(const Block& part) const {
        Bytes bytes;
        for (int64_t row = part.row; row < part.row + part.rows; ++row) {
            const auto begin =
                row_major.begin() + (row * cols + part.col) * static_cast<int64_t>(element_bytes());
            bytes.insert(bytes.end(), begin, begin + part.cols * static_cast<int64_t>(element_bytes()));
        }
        return bytes;
    }
};

Matrix random_matrix(std::mt19937& random, DType dtype, int64_t rows, int64_t cols, bool fortran,
                     bool big_endian) {
    Matrix matrix{dtype,   rows,       cols,
                  fortran, big_endian, Bytes(static_cast<size_t>(rows * cols) * size_of(dtype))};
    for (std::byte& byte : matrix.row_major)
        byte = static_cast<std::byte>(dtype == DType::boolean ? random() % 2 : random());
    return matrix;
}

std::string header_of(const Matrix& matrix) {
    const std::string dictionary = fmt::format(
        "{{'descr': '{}{}', 'fortran_order': {}, 'shape': ({}, {}), }}\n", matrix.big_endian ? '>' : '<',
        dtype_info(matrix.dtype).npy_descriptor, matrix.fortran ? "True" : "False", matrix.rows, matrix.cols);
    std::string header = "\x93NUMPY\x01";
    header += {'\0', static_cast<char>(dictionary.size()), '\0'};
    return header + dictionary;
}

void save(const QString& path, const Matrix& matrix) {
    const std::string header = header_of(matrix);
    const auto header_bytes = std::as_bytes(std::span(header));
    Bytes file(header_bytes.begin(), header_bytes.end());
    const size_t size = matrix.element_bytes();
    const size_t start = file.size();
    file.resize(start + matrix.row_major.size());
    for (int64_t row = 0; row < matrix.rows; ++row)
        for (int64_t col = 0; col < matrix.cols; ++col) {
            const auto from = static_cast<size_t>(row * matrix.cols + col);
            const auto to = matrix.fortran ? static_cast<size_t>(col * matrix.rows + row) : from;
            for (size_t byte = 0; byte < size; ++byte)
                file[start + to * size + (matrix.big_endian ? size - 1 - byte : byte)] =
                    matrix.row_major[from * size + byte];
        }
    write_file(path, file);
}

Block random_block(std::mt19937& random, const Matrix& matrix) {
    const auto below = [&](int64_t bound) {
        return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
    };
    Block block;
    block.row = below(matrix.rows + 1);
    block.col = below(matrix.cols + 1);
    block.rows = below(matrix.rows - block.row + 1);
    block.cols = below(matrix.cols - block.col + 1);
    return block;
}

Bytes read_block(const NpyReader& reader, const Block& block) {
    Bytes bytes(static_cast<size_t>(block.elements()) * size_of(reader.spec().dtype), std::byte{0xee});
    reader.read_block(block, bytes);
    return bytes;
}

uint64_t peak_resident_bytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

class TestNpyReader : public QObject {
    Q_OBJECT
    QTemporaryDir folder_;
    QString path(const QString& name) const { return folder_.filePath(name); }
    std::filesystem::path file(const QString& name) const { return path(name).toStdString(); }

  private slots:
    void what_numpy_wrote_is_read_in_every_type_order_endianness_and_version() {
        QCOMPARE(run_npy_fixtures("write", folder_.path()), QString());
        QFile list(path("list"));
        QVERIFY(list.open(QIODevice::ReadOnly));
        int count = 0;
        while (!list.atEnd()) {
            const QStringList fields = QString::fromUtf8(list.readLine()).trimmed().split(' ');
            std::vector<int64_t> lengths;
            for (const QString& length : fields.mid(3)) lengths.push_back(length.toLongLong());
            const TensorSpec spec{*dtype_from_name(fields[1].toStdString()),
                                  Shape(std::span<const int64_t>(lengths))};
            const NpyReader reader(file(fields[0] + ".npy"));
            QCOMPARE(reader.spec().text(), spec.text());
            const Tensor tensor = reader.read_all();
            const Bytes expected = file_bytes(path(fields[0] + ".raw"));
            QVERIFY2(std::ranges::equal(tensor.bytes(), expected), qPrintable(fields.join(' ')));
            ++count;
        }
        QCOMPARE(count, 7 * 17 * 2 * 2);
    }

    void blocks_rows_columns_and_byte_ranges_are_the_same_in_every_order_data() {
        QTest::addColumn<bool>("fortran");
        QTest::addColumn<bool>("big_endian");
        for (const bool fortran : {false, true})
            for (const bool big_endian : {false, true})
                QTest::addRow("%s, %s", fortran ? "Fortran" : "C",
                              big_endian ? "big-endian" : "little-endian")
                    << fortran << big_endian;
    }
    void blocks_rows_columns_and_byte_ranges_are_the_same_in_every_order() {
        QFETCH(bool, fortran);
        QFETCH(bool, big_endian);
        const unsigned seed = std::random_device{}();
        qInfo("seed %u", seed);
        std::mt19937 random(seed);
        // Small ones, and shapes whose rows or columns are longer than a gap that is read through or a
        // buffer.
        const std::pair<int64_t, int64_t> sizes[] = {{1, 1},    {7, 5},       {64, 130},   {3, 5000},
                                                     {5000, 3}, {2, 140'000}, {140'000, 2}};
        for (const DTypeInfo& info : all_dtypes())
            for (const auto& [rows, cols] : sizes) {
                const Matrix matrix = random_matrix(random, info.dtype, rows, cols, fortran, big_endian);
                save(path("m.npy"), matrix);
                const NpyReader reader(file("m.npy"));
                QVERIFY(read_block(reader, {0, 0, rows, cols}) == matrix.row_major);
                for (int repeat = 0; repeat < 6; ++repeat) {
                    const Block block = random_block(random, matrix);
                    const Bytes expected = matrix.block(block);
                    QVERIFY(read_block(reader, block) == expected);
                    const uint64_t offset = random() % (expected.size() + 1);
                    const uint64_t size = random() % (expected.size() - offset + 1);
                    Bytes range(size);
                    reader.read_block_bytes(block, offset, range);
                    QVERIFY2(std::equal(range.begin(), range.end(),
                                        expected.begin() + static_cast<int64_t>(offset)),
                             qPrintable(QString("%1×%2, %3 bytes at %4")
                                            .arg(block.rows)
                                            .arg(block.cols)
                                            .arg(size)
                                            .arg(offset)));
                }
                const Block some_rows{rows / 2, 0, rows - rows / 2, cols};
                Bytes bytes(matrix.block(some_rows).size());
                reader.read_rows(some_rows.row, some_rows.rows, bytes);
                QVERIFY(bytes == matrix.block(some_rows));
                const Block some_cols{0, cols / 3, rows, cols - cols / 3};
                bytes.resize(matrix.block(some_cols).size());
                reader.read_columns(some_cols.col, some_cols.cols, bytes);
                QVERIFY(bytes == matrix.block(some_cols));
            }
    }

    void a_panel_read_leaf_by_leaf_is_the_panel() {
        std::mt19937 random(1);
        for (const bool fortran : {false, true}) {
            const Matrix matrix = random_matrix(random, DType::f32, 700, 900, fortran, false);
            save(path("panel.npy"), matrix);
            const NpyReader reader(file("panel.npy"));
            const Block panel{13, 100, 650, 777};
            const Bytes expected = matrix.block(panel);
            Bytes joined;
            constexpr size_t leaf = size_t{1} << 20;
            for (size_t offset = 0; offset < expected.size(); offset += leaf) {
                Bytes piece(std::min(leaf, expected.size() - offset));
                reader.read_block_bytes(panel, offset, piece);
                joined.insert(joined.end(), piece.begin(), piece.end());
            }
            QVERIFY(joined == expected);
        }
    }

    void bool_bytes_other_than_0_and_1_become_1() {
        Matrix matrix{
            DType::boolean,
            2,
            3,
            false,
            false,
            {std::byte{0}, std::byte{1}, std::byte{2}, std::byte{255}, std::byte{0}, std::byte{128}}};
        const Bytes expected{std::byte{0}, std::byte{1}, std::byte{1},
                             std::byte{1}, std::byte{0}, std::byte{1}};
        for (const bool fortran : {false, true}) {
            matrix.fortran = fortran;
            save(path("bool.npy"), matrix);
            const NpyReader reader(file("bool.npy"));
            QVERIFY(read_block(reader, {0, 0, 2, 3}) == expected);
            QVERIFY(std::ranges::equal(reader.read_all().bytes(), expected));
        }
    }

    void other_ranks_are_seen_as_the_matrix_the_caller_wants() {
        const std::string header = make_npy_header({DType::u8, Shape{2, 3, 2}});
        Bytes contents;
        for (const char character : header) contents.push_back(static_cast<std::byte>(character));
        for (int i = 0; i < 12; ++i) contents.push_back(static_cast<std::byte>(i));
        write_file(path("cube.npy"), contents);
        NpyReader reader(file("cube.npy"));
        QVERIFY(!reader.is_matrix());
        VERIFY_REFUSED(read_block(reader, {0, 0, 1, 1}), "expected a matrix, found u8[2, 3, 2]");
        VERIFY_REFUSED(reader.view_as_matrix(5, 2), "expected 10 elements for a matrix [5, 2], found 12");
        reader.view_as_matrix(4, 3);
        QVERIFY(read_block(reader, {1, 1, 2, 2}) ==
                (Bytes{std::byte{4}, std::byte{5}, std::byte{7}, std::byte{8}}));
        reader.view_as_matrix(1, 12);
        QVERIFY(read_block(reader, {0, 10, 1, 2}) == (Bytes{std::byte{10}, std::byte{11}}));

        save(path("fortran.npy"), Matrix{DType::u8, 2, 3, true, false, Bytes(6)});
        NpyReader columns(file("fortran.npy"));
        columns.view_as_matrix(2, 3);
        VERIFY_REFUSED(columns.view_as_matrix(3, 2),
                       "expected C order to see u8[2, 3] as [3, 2], found Fortran order");
    }

    void blocks_outside_the_matrix_are_refused() {
        save(path("small.npy"), Matrix{DType::u8, 2, 3, false, false, Bytes(6)});
        const NpyReader reader(file("small.npy"));
        Bytes none;
        for (const Block& block : {Block{0, 0, 3, 1}, Block{0, 3, 1, 1}, Block{-1, 0, 1, 1},
                                   Block{0, 0, -1, 1}, Block{INT64_MAX, 0, INT64_MAX, 1}})
            VERIFY_REFUSED(reader.read_block(block, none), "expected a block within [2, 3]");
        VERIFY_REFUSED(reader.read_block_bytes({0, 0, 2, 2}, 5, none),
                       "expected a range within the 4 bytes of a block");
        Bytes two(2);
        VERIFY_REFUSED(reader.read_block_bytes({0, 0, 2, 2}, 3, two), "found 2 bytes at 3");
        VERIFY_REFUSED(reader.read_block_bytes({0, 0, 2, 2}, UINT64_MAX, two), "expected a range within");
    }

    void a_file_shorter_than_its_shape_says_is_refused_with_the_number_of_bytes() {
        save(path("cut.npy"), Matrix{DType::f64, 3, 4, false, false, Bytes(96)});
        const auto whole = static_cast<off_t>(file_bytes(path("cut.npy")).size());
        QCOMPARE(truncate(qPrintable(path("cut.npy")), whole - 9), 0);
        VERIFY_REFUSED(NpyReader(file("cut.npy")), "cut.npy: expected");
        VERIFY_REFUSED(NpyReader(file("cut.npy")), "bytes for f64[3, 4]");
        VERIFY_REFUSED(NpyReader(file("cut.npy")), ", 9 too few; copy or save it again");
        QCOMPARE(truncate(qPrintable(path("cut.npy")), 20), 0);
        VERIFY_REFUSED(NpyReader(file("cut.npy")), "cut.npy: expected a .npy header of");
        QCOMPARE(truncate(qPrintable(path("cut.npy")), 0), 0);
        VERIFY_REFUSED(NpyReader(file("cut.npy")), "found an empty one");
    }

    void a_file_cut_while_it_is_open_is_an_error_not_zeros() {
        save(path("shrinks.npy"), Matrix{DType::f64, 300, 4, false, false, Bytes(9600)});
        const NpyReader reader(file("shrinks.npy"));
        QCOMPARE(truncate(qPrintable(path("shrinks.npy")), 5000), 0);
        VERIFY_REFUSED(reader.read_all(), "found its end; it was cut short while in use");
    }

    void bytes_behind_the_array_are_ignored() {
        const Matrix matrix{DType::u8, 1, 2, false, false, {std::byte{3}, std::byte{4}}};
        save(path("two.npy"), matrix);
        Bytes contents = file_bytes(path("two.npy"));
        contents.push_back(std::byte{99});
        write_file(path("two.npy"), contents);
        QVERIFY(std::ranges::equal(NpyReader(file("two.npy")).read_all().bytes(), matrix.row_major));
    }

    void what_cannot_be_opened_says_why() {
        VERIFY_REFUSED(NpyReader(file("missing.npy")),
                       "missing.npy: No such file or directory; check the path");
        VERIFY_REFUSED(NpyReader(folder_.path().toStdString()), "found a folder");
        QCOMPARE(mkfifo(qPrintable(path("pipe.npy")), 0600), 0);
        VERIFY_REFUSED(NpyReader(file("pipe.npy")), "found a pipe or a device");
        VERIFY_REFUSED(NpyReader("/dev/zero"), "found a pipe or a device");
    }

    void a_changed_or_replaced_file_is_noticed() {
        const Matrix matrix{DType::u8, 2, 3, false, false, Bytes(6)};
        save(path("job.npy"), matrix);
        const NpyReader reader(file("job.npy"));
        QVERIFY(reader.unchanged());
        QVERIFY(NpyReader(file("job.npy")).identity() == reader.identity());
        QTest::qWait(20);  // the clock of a file system ticks every few milliseconds
        save(path("job.npy"), matrix);
        QVERIFY(!reader.unchanged());

        const NpyReader again(file("job.npy"));
        save(path("other.npy"), matrix);
        QVERIFY(again.unchanged());
        std::filesystem::rename(file("other.npy"), file("job.npy"));
        QVERIFY(!again.unchanged());

        const NpyReader last(file("job.npy"));
        std::filesystem::remove(file("job.npy"));
        QVERIFY(!last.unchanged());
    }

    void slices_of_two_gibibytes_take_little_memory_data() {
        QTest::addColumn<bool>("fortran");
        QTest::newRow("C") << false;
        QTest::newRow("Fortran") << true;
    }
    void slices_of_two_gibibytes_take_little_memory() {
        QFETCH(bool, fortran);
        constexpr int64_t rows = 65'536;
        constexpr int64_t cols = 8'192;
        const std::string header = header_of({DType::f32, rows, cols, fortran, false, {}});
        write_file(path("large.npy"), std::as_bytes(std::span(header)));
        const auto offset = static_cast<off_t>(header.size());
        const off_t size = offset + static_cast<off_t>(rows) * cols * 4;
        QCOMPARE(truncate(qPrintable(path("large.npy")), size), 0);
        // One number far behind 2^31 bytes.
        const Block place{65'000, 8'000, 1, 1};
        const off_t index = fortran ? place.col * rows + place.row : place.row * cols + place.col;
        const float value = 42.5F;
        {
            QFile sparse(path("large.npy"));
            QVERIFY(sparse.open(QIODevice::ReadWrite));
            QVERIFY(sparse.seek(offset + index * 4));
            QCOMPARE(sparse.write(reinterpret_cast<const char*>(&value), 4), 4);
        }
        const NpyReader reader(file("large.npy"));
        const uint64_t before = peak_resident_bytes();
        std::vector<float> panel(static_cast<size_t>(256 * cols));  // 8 MiB
        const std::span<std::byte> bytes = std::as_writable_bytes(std::span(panel));
        reader.read_rows(64'900, 256, bytes);
        QCOMPARE(panel[static_cast<size_t>(100 * cols + place.col)], value);
        panel.assign(static_cast<size_t>(rows) * 32, 1.0F);
        reader.read_columns(7'990, 32, std::as_writable_bytes(std::span(panel)));
        QCOMPARE(panel[static_cast<size_t>(place.row) * 32 + 10], value);
        QCOMPARE(std::count(panel.begin(), panel.end(), 0.0F), rows * 32 - 1);
        // The sanitizer keeps freed memory for a while, up to 256 MiB.
#ifdef __SANITIZE_ADDRESS__
        constexpr uint64_t limit = uint64_t{320} << 20;
#else
        constexpr uint64_t limit = uint64_t{32} << 20;
#endif
        QVERIFY2(peak_resident_bytes() - before < limit,
                 qPrintable(QString::number(peak_resident_bytes() - before)));
    }
};

QTEST_GUILESS_MAIN(TestNpyReader)
#include "test_npy_reader.moc"
