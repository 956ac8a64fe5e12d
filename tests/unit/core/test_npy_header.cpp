// Which .npy headers are read, what they mean, and how the others are refused.
#include <QtTest>
#include <string>

#include "core/tensor/npy_header.hpp"
#include "tests/support/error_of.hpp"

using namespace goblin;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

std::string with_dictionary(const std::string& dictionary, int major = 1) {
    std::string file = "\x93NUMPY";
    file += {static_cast<char>(major), '\0'};
    for (int byte = 0; byte < (major == 1 ? 2 : 4); ++byte)
        file += static_cast<char>(dictionary.size() >> (8 * byte));
    return file + dictionary;
}

NpyHeader parse(const std::string& file) {
    return parse_npy_header(bytes_of(file));
}
NpyHeader parse_dictionary(const std::string& dictionary) {
    return parse(with_dictionary(dictionary));
}
std::string dictionary_of(const std::string& descriptor, const std::string& shape = "(3, 4)") {
    return "{'descr': " + descriptor + ", 'fortran_order': False, 'shape': " + shape + ", }\n";
}

}  // namespace

class TestNpyHeader : public QObject {
    Q_OBJECT
  private slots:
    void a_header_says_type_shape_order_and_where_elements_start() {
        const std::string dictionary = "{'descr': '>f8', 'fortran_order': True, 'shape': (3, 4), }\n";
        const NpyHeader header = parse_dictionary(dictionary);
        QCOMPARE(header.spec.text(), std::string("f64[3, 4]"));
        QCOMPARE(header.order, NpyOrder::fortran);
        QVERIFY(header.big_endian);
        QCOMPARE(header.data_offset_bytes, 10 + dictionary.size());
        QCOMPARE(header.file_size_bytes(), 10 + dictionary.size() + 96);
    }

    void all_three_versions_are_read() {
        for (const int major : {1, 2, 3}) {
            const NpyHeader header = parse(with_dictionary(dictionary_of("'<i4'"), major));
            QCOMPARE(header.spec.text(), std::string("i32[3, 4]"));
            QCOMPARE(header.data_offset_bytes, (major == 1 ? 10 : 12) + dictionary_of("'<i4'").size());
        }
    }

    void every_element_type_and_byte_order_is_known() {
        for (const DTypeInfo& info : all_dtypes())
            for (const std::string order : {"", "<", ">", "=", "|"}) {
                const NpyHeader header =
                    parse_dictionary(dictionary_of("'" + order + std::string(info.npy_descriptor) + "'"));
                QCOMPARE(header.spec.dtype, info.dtype);
                QCOMPARE(header.big_endian, order == ">" && info.size_bytes > 1);
            }
    }

    void the_spellings_of_other_writers_are_read_data() {
        QTest::addColumn<QString>("dictionary");
        QTest::newRow("no trailing comma") << "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}";
        QTest::newRow("no spaces") << "{'descr':'<f4','fortran_order':False,'shape':(3,4)}";
        QTest::newRow("spaces everywhere")
            << " \t{ 'descr' : '<f4' , 'fortran_order'\n:\rFalse , 'shape' : ( 3 , 4 , ) , } \n";
        QTest::newRow("double quotes") << "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (3, 4)}";
        QTest::newRow("another order of keys") << "{'shape': (3, 4), 'fortran_order': False, 'descr': '<f4'}";
        QTest::newRow("long numbers of Python 2")
            << "{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 4L), }";
    }
    void the_spellings_of_other_writers_are_read() {
        QFETCH(QString, dictionary);
        QCOMPARE(parse_dictionary(dictionary.toStdString()).spec.text(), std::string("f32[3, 4]"));
    }

    void shapes_of_every_rank_are_read() {
        QCOMPARE(parse_dictionary(dictionary_of("'|b1'", "()")).spec.text(), std::string("bool[]"));
        QCOMPARE(parse_dictionary(dictionary_of("'|b1'", "(5,)")).spec.text(), std::string("bool[5]"));
        QCOMPARE(parse_dictionary(dictionary_of("'|b1'", "(0, 7)")).spec.text(), std::string("bool[0, 7]"));
        QCOMPARE(parse_dictionary(dictionary_of("'|b1'", "(1, 2, 3, 4, 5, 6, 7, 8)")).spec.text(),
                 std::string("bool[1, 2, 3, 4, 5, 6, 7, 8]"));
    }

    void other_element_types_are_refused_by_name_with_advice_data() {
        QTest::addColumn<QString>("descriptor");
        QTest::addColumn<QString>("found");
        QTest::addColumn<QString>("advice");
        QTest::newRow("half") << "'<f2'"
                              << "found '<f2' (16-bit floats)"
                              << "a.astype(numpy.float32)";
        QTest::newRow("long double") << "'<f16'"
                                     << "'<f16' (extended floats)"
                                     << "a.astype(numpy.float64)";
        QTest::newRow("complex") << "'<c16'"
                                 << "'<c16' (complex numbers)"
                                 << "a.real";
        QTest::newRow("int16") << "'>i2'"
                               << "'>i2' (16-bit integers)"
                               << "a.astype(numpy.int32)";
        QTest::newRow("uint16") << "'<u2'"
                                << "'<u2' (unsigned 16-bit integers)"
                                << "a.astype(numpy.int32)";
        QTest::newRow("uint32") << "'<u4'"
                                << "'<u4' (unsigned 32-bit integers)"
                                << "a.astype(numpy.int64)";
        QTest::newRow("uint64") << "'<u8'"
                                << "'<u8' (unsigned 64-bit integers)"
                                << "below 2^63";
        QTest::newRow("objects") << "'|O'"
                                 << "'|O' (Python objects)"
                                 << "a.astype(numpy.float32)";
        QTest::newRow("text") << "'<U5'"
                              << "'<U5' (text)"
                              << "into numbers";
        QTest::newRow("byte strings") << "'|S12'"
                                      << "'|S12' (text)"
                                      << "into numbers";
        QTest::newRow("bfloat16") << "'<V2'"
                                  << "'<V2' (raw bytes or a type from outside NumPy"
                                  << "a.astype(numpy.float32)";
        QTest::newRow("dates") << "'<M8[D]'"
                               << "'<M8[D]' (dates)"
                               << "a.astype(numpy.int64)";
        QTest::newRow("durations") << "'<m8[s]'"
                                   << "'<m8[s]' (durations)"
                                   << "a.astype(numpy.int64)";
        QTest::newRow("fields") << "[('x', '<f4'), ('y', '<f4')]"
                                << "found [('x', '<f4'), ('y', '<f4')]"
                                << "a['name']";
        QTest::newRow("subarray") << "('<f4', (2,))"
                                  << "a structured array"
                                  << "a['name']";
        QTest::newRow("nonsense") << "'zebra'"
                                  << "'zebra' (no type NumPy writes)"
                                  << "numpy.save";
        QTest::newRow("empty") << "''"
                               << "found '' (no type NumPy writes)"
                               << "numpy.save";
        QTest::newRow("two byte orders") << "'<<f4'"
                                         << "'<<f4'"
                                         << "numpy.save";
        QTest::newRow("escape sequences") << "'\x1b[2J\x01'"
                                          << "found '?[2J?'"
                                          << "numpy.save";
    }
    void other_element_types_are_refused_by_name_with_advice() {
        QFETCH(QString, descriptor);
        QFETCH(QString, found);
        QFETCH(QString, advice);
        const std::string file = with_dictionary(dictionary_of(descriptor.toStdString()));
        VERIFY_REFUSED(parse(file), found);
        VERIFY_REFUSED(parse(file), advice);
        VERIFY_REFUSED(parse(file), "expected elements of one of the types f32, f64, i32, i64, i8, u8, bool");
    }

    void malformed_headers_are_refused_data() {
        QTest::addColumn<QString>("dictionary");
        QTest::addColumn<QString>("message");
        const auto shape = [](const char* text) {
            return QString::fromStdString(dictionary_of("'<f4'", text));
        };
        QTest::newRow("empty") << ""
                               << "expected '{' at byte 0 of the header's dictionary, found its end";
        QTest::newRow("no dictionary") << "hello"
                                       << "expected '{' at byte 0 of the header's dictionary, found 'hello'";
        QTest::newRow("no shape") << "{'descr': '<f4', 'fortran_order': False}"
                                  << "found no 'shape'";
        QTest::newRow("no order") << "{'descr': '<f4', 'shape': (3,)}"
                                  << "found no 'fortran_order'";
        QTest::newRow("no descr") << "{'fortran_order': False, 'shape': (3,)}"
                                  << "found no 'descr'";
        QTest::newRow("unknown key") << "{'descr': '<f4', 'colour': 1}"
                                     << "found 'colour'";
        QTest::newRow("key twice") << "{'descr': '<f4', 'descr': '<f8'}"
                                   << "once each in the header, found 'descr'";
        QTest::newRow("order is a number") << "{'fortran_order': 0}"
                                           << "expected True or False";
        QTest::newRow("unclosed string") << "{'descr': '<f4"
                                         << "expected a plain string";
        QTest::newRow("escaped string") << "{'descr': '\\x3cf4'"
                                        << "expected a plain string";
        QTest::newRow("unclosed dictionary") << "{'descr': '<f4'"
                                             << "expected '}'";
        QTest::newRow("commas alone") << "{,}"
                                      << "expected '''";
        QTest::newRow("text behind") << shape("(3,)").trimmed() + " + 1"
                                     << "expected nothing more";
        QTest::newRow("NUL behind") << shape("(3,)") + QChar(0) << "expected nothing more";
        QTest::newRow("negative length") << shape("(3, -1)") << "from 0 to 2^40 in the header, found -1";
        QTest::newRow("minus zero") << shape("(-0,)") << "found -0";
        QTest::newRow("length beyond 64 bits")
            << shape("(99999999999999999999,)") << "found 99999999999999999999";
        QTest::newRow("length beyond 2^40") << shape("(1099511627777,)") << "found 1099511627777 on axis 0";
        QTest::newRow("elements beyond 2^40") << shape("(1048576, 1048577)") << "2^40 elements";
        QTest::newRow("elements beyond 64 bits")
            << shape("(1099511627776, 1099511627776)") << "2^40 elements";
        QTest::newRow("nine axes") << shape("(1, 1, 1, 1, 1, 1, 1, 1, 1)")
                                   << "expected at most 8 axes, found 9";
        QTest::newRow("length as float") << shape("(3.0,)") << "expected ','";
        QTest::newRow("length in hex") << shape("(0x10,)") << "expected ','";
        QTest::newRow("leading zero") << shape("(03,)") << "expected the length of an axis";
        QTest::newRow("minus alone") << shape("(-,)") << "expected the length of an axis";
        QTest::newRow("no tuple") << shape("3") << "expected '('";
        QTest::newRow("number in parentheses") << shape("(3)") << "expected ','";
        QTest::newRow("list") << shape("[3, 4]") << "expected '('";
        QTest::newRow("comma alone") << shape("(,)") << "expected the length of an axis";
        QTest::newRow("nested tuple") << shape("((3,),)") << "expected the length of an axis";
        QTest::newRow("unclosed tuple") << "{'shape': (3, 4"
                                        << "expected ')'";
    }
    void malformed_headers_are_refused() {
        QFETCH(QString, dictionary);
        QFETCH(QString, message);
        VERIFY_REFUSED(parse_dictionary(dictionary.toStdString()), message);
    }

    void other_files_are_refused_by_what_they_are() {
        VERIFY_REFUSED(parse(""), "expected a .npy file, found an empty one");
        VERIFY_REFUSED(parse("\x93NU"), "found only its first 3 bytes");
        VERIFY_REFUSED(parse("PK\x03\x04 and more"), "a zip archive (perhaps .npz)");
        VERIFY_REFUSED(parse("\x80\x04\x95"), "a Python pickle");
        VERIFY_REFUSED(parse("\x89HDF\r\n"), "an HDF5 file");
        VERIFY_REFUSED(parse("1.0, 2.0\n"), "found '1.0, 2'");
    }

    void other_versions_are_refused() {
        VERIFY_REFUSED(parse(with_dictionary(dictionary_of("'<f4'"), 4)),
                       "version 1.0, 2.0 or 3.0, found 4.0");
        std::string file = with_dictionary(dictionary_of("'<f4'"));
        file[7] = 1;
        VERIFY_REFUSED(parse(file), "found 1.1");
    }

    void a_header_cut_anywhere_is_refused() {
        for (const int major : {1, 2, 3}) {
            const std::string file = with_dictionary(dictionary_of("'<f4'"), major);
            for (size_t size = 0; size < file.size(); ++size)
                QVERIFY(!error_of([&] { parse(file.substr(0, size)); }).isEmpty());
            VERIFY_REFUSED(parse(file.substr(0, 20)), "found a file of 20");
        }
    }

    void a_header_is_at_most_64_kib() {
        std::string dictionary = dictionary_of("'<f4'");
        dictionary.resize(npy_max_dictionary_bytes, ' ');
        QCOMPARE(parse(with_dictionary(dictionary, 2)).data_offset_bytes, npy_max_header_bytes);
        dictionary += ' ';
        VERIFY_REFUSED(parse(with_dictionary(dictionary, 2)), "at most 65536 bytes, found one of 65537");
    }

    void ten_thousand_open_parentheses_are_harmless() {
        VERIFY_REFUSED(parse(with_dictionary(dictionary_of("'<f4'", std::string(10'000, '(')), 2)),
                       "expected the length of an axis");
    }

    void what_is_written_is_read_back_and_aligned() {
        for (const DTypeInfo& info : all_dtypes())
            for (const Shape& shape :
                 {Shape{}, Shape{0}, Shape{7}, Shape{3, 4}, Shape{1, 1, 1, 1, 1, 1, 1, max_elements}}) {
                const std::string text = make_npy_header({info.dtype, shape});
                QCOMPARE(text.size() % 64, size_t{0});
                QCOMPARE(text.back(), '\n');
                const NpyHeader header = parse(text);
                QCOMPARE(header, (NpyHeader{{info.dtype, shape}, NpyOrder::c, false, text.size()}));
            }
    }
};

QTEST_APPLESS_MAIN(TestNpyHeader)
#include "test_npy_header.moc"
