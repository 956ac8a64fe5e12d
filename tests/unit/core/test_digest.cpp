// Digests are what their definition says, and follow every change of bytes, type, shape and key.
#include <QtTest>
#include <algorithm>
#include <numeric>
#include <random>

#include "core/work/digest.hpp"
#include "core/work/sha256_lanes.hpp"
#include "tests/support/error_of.hpp"

using namespace goblin;

namespace {

struct KnownAnswer {
    TensorSpec spec;
    const char* plain;
    const char* keyed;
};

// Printed by tests/support/digest_vectors.py, which knows nothing of this code.
const KnownAnswer known_answers[] = {
    {{DType::u8, Shape{}},
     "ecf2893fe5c9a86cc54252bb3efb5af75d8606456749e086fc23c086fc252d6f",
     "267028beba26d44833e26edebf1c7527cab240bd965625725dbbc6a7ad1cd5c7"},
    {{DType::u8, Shape{0}},
     "973c130aac96f4d39d0d15d9bc2039137f34b87e65b727005a7896c3de7cb3c9",
     "c747d4632e8fc5e4cf904ffa845301bd07027b149d6587079dffa2e0a4631836"},
    {{DType::u8, Shape{0, 5}},
     "20dd6878fe2922036922e11d05717df9d4abcd60ed202ae6581290cc466b68b6",
     "7dda140af94a3ddf74e9a12ae4b596ad854c60086c1f2faec6ccc54824ea4a55"},
    {{DType::u8, Shape{3}},
     "cc1ca129b0d7e60523e05fe1a92466e89826d5e967795017d08b6cf4605078fc",
     "c2394db18f6ab5301e91c01c7bce4d2fea0ef71ccb085b5a7513f08ac035deed"},
    {{DType::i8, Shape{3}},
     "a8ae638c428531175838b1e381899229f159f88cda0d7ebbf64854412b0e7345",
     "a32ca8d557650fc2e5fbf22972484770321237cd2310c6f2d08fba2c5af19ec8"},
    {{DType::u8, Shape{1, 3}},
     "b346c943515bf4a2e7205940dcdc3d2a18c7b4e07d6c7cdbf5105942ce18dfb3",
     "317c62ad176570b52c010439caf23a551c5ab82301956926c1a3119ebd59cd49"},
    {{DType::f32, Shape{2, 3}},
     "8515f07e7d0df238b608a9f3053333561006e3a9f17dffef2bb4c511bc78ae4e",
     "74d84158684987689de7917c0c03a26adb47cdb570d92c418f7ffe661dbf37d5"},
    {{DType::f64, Shape{1, 3}},
     "55073773e39d79ada45ee16eb50bb53223d8dbfc30bd9347bf73ac37d0697af5",
     "03c7e1705a1d69ab17cd8bbb2235231085f4ee8b56e2ff3e0b63e14c83bc3ad3"},
    {{DType::i64, Shape{7}},
     "66674da3aa81f548c798a850b4f86645d8d7ce6425482a34e516b63d31d794a5",
     "66c1479b0e4aee5d7c3a37a0a7b1f5c523476e027421a9edfe39bdba1bf651c9"},
    {{DType::i32, Shape{1, 1, 1, 1, 1, 1, 1, 2}},
     "5df1f70fb46e3a77cc78d2c166ab04e0d624e493804627d7bead305265faabc8",
     "40ea8e178ca553ece2f3651fdc6bde26d01c96746933d932115f829324e6c45a"},
    {{DType::boolean, Shape{1}},
     "e0e25caa607b54a21768a8440a474fa60aaf0d6dde9e3c5ddf63dd84a203ffdc",
     "e122644ca48fef0101b8118ef3427905a6eee18a489999e4cb126bfbe5e0d2f3"},
    {{DType::u8, Shape{1048575}},
     "c30c89679a381621dbb8c64d1ca4517d9208e3fdfb3aba4dff13054d7789b176",
     "5e83d8318637f1ceac26f0b5962323339289a18332255eb2793385b3e61fab88"},
    {{DType::u8, Shape{1048576}},
     "e27c86418666d37c658ee18964e823df5525a62c0cd1001622bf47a2d3f18e46",
     "988e9fc04ce79107b9888e9334c17768ef3959b18b8097ab831a886eb818663c"},
    {{DType::u8, Shape{1048577}},
     "7bbc63f2f36a2377e410b68e9bb89c0236b61345fdb5f1bf93810c863c5af98d",
     "8403e54dae1eb55bfa243cb57047190ba472ba23b6bc503afb12c3e68afe1c0b"},
    {{DType::f32, Shape{3, 262144}},
     "bb306bf01fe19dedb3622f1b21fa89995143d0ea244a12d0ec370eea87ef08f7",
     "4d91850334930ab4fbcb62a5354f149956fa4ee78792a526f64d7b5ddb2e86eb"},
    {{DType::u8, Shape{5242880}},
     "a44d7d34d9cb79e60705d8835e54ff9dc75af732a3404d22c59893f5aa8ec57b",
     "89bf25c0b461bc825b52c77daaa0e4cef1d622bbb0be2b35dddc8ef463e8f52a"},
    {{DType::u8, Shape{6291473}},
     "eab001cc1f61367a8fac1096c7d5885b5306801a2c36135ad61a2a95bd0d07a3",
     "119752c59434aee7d73ef6ecc52b1e92af5e3cb76c28a096a2def1b7cf0a98ec"},
    {{DType::u8, Shape{7340032}},
     "2a795819b791b2bc9f141fd32329e5bb03ed34213f400a0976ac91d7b289dadd",
     "cc11ebd28dc02d215b12c22ef3587fc8220885c6ddfc1284057d6bcda371be03"},
};

std::vector<uint8_t> bytes_0_to_31() {
    std::vector<uint8_t> key(32);
    std::iota(key.begin(), key.end(), uint8_t{0});
    return key;
}

std::vector<std::byte> pattern(uint64_t size_bytes) {
    std::vector<std::byte> bytes(size_bytes);
    for (uint64_t i = 0; i < size_bytes; ++i) bytes[i] = static_cast<std::byte>(i * i + 3 * i + i / 1024);
    return bytes;
}

std::string hex_of(DigestKey key, const TensorSpec& spec) {
    return tensor_digest(key, spec, pattern(spec.size_bytes())).hex();
}

}  // namespace

class TestDigest : public QObject {
    Q_OBJECT
  private slots:
    void known_answers_hold() {
        for (const KnownAnswer& known : known_answers) {
            QCOMPARE(hex_of({}, known.spec), std::string(known.plain));
            QCOMPARE(hex_of(bytes_0_to_31(), known.spec), std::string(known.keyed));
        }
    }

    void sha256_of_abc_is_the_published_one() {
        const uint8_t abc[] = {'a', 'b', 'c'};
        QCOMPARE(sha256(abc).hex(),
                 std::string("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    }

    void an_empty_tensor_has_one_empty_leaf() {
        QCOMPARE(leaf_count(0), uint64_t{1});
        const Digest leaf = leaf_digest({}, 0, {});
        const TensorSpec empty{DType::u8, Shape{0}};
        QCOMPARE(root_digest({}, empty, {&leaf, 1}).hex(), hex_of({}, empty));
    }

    void leaves_are_a_mebibyte() {
        QCOMPARE(leaf_count(1), uint64_t{1});
        QCOMPARE(leaf_count(leaf_size_bytes), uint64_t{1});
        QCOMPARE(leaf_count(leaf_size_bytes + 1), uint64_t{2});
        QCOMPARE(leaf_count(7 * leaf_size_bytes), uint64_t{7});
    }

    void a_stream_in_pieces_of_any_length_gives_the_same() {
        const unsigned seed = std::random_device{}();
        qInfo("seed %u", seed);
        std::mt19937 random(seed);
        const std::vector<uint8_t> key = bytes_0_to_31();
        for (const uint64_t size : {uint64_t{0}, uint64_t{1}, leaf_size_bytes - 1, leaf_size_bytes,
                                    leaf_size_bytes + 1, 3 * leaf_size_bytes, 5 * leaf_size_bytes + 3}) {
            const TensorSpec spec{DType::u8, Shape{static_cast<int64_t>(size)}};
            const std::vector<std::byte> bytes = pattern(size);
            const std::string expected = tensor_digest(key, spec, bytes).hex();
            for (const uint64_t longest : {uint64_t{10'000}, leaf_size_bytes / 2, 3 * leaf_size_bytes}) {
                DigestStream stream(key, spec);
                std::span<const std::byte> rest(bytes);
                while (!rest.empty()) {
                    const size_t piece = std::min<size_t>(rest.size(), random() % (longest + 1));
                    stream.add(rest.first(piece));
                    rest = rest.subspan(piece);
                }
                QCOMPARE(stream.finish().hex(), expected);
            }
        }
    }

    // Seven leaves and more are hashed side by side where the processor has the vectors for it.
    void many_leaves_give_the_same_as_one_after_the_other() {
        for (const uint64_t whole : {uint64_t{6}, uint64_t{7}, uint64_t{16}, uint64_t{17}, uint64_t{39}})
            for (const uint64_t rest : {uint64_t{0}, uint64_t{5}})
                for (const bool keyed : {false, true}) {
                    const std::vector<uint8_t> key = keyed ? bytes_0_to_31() : std::vector<uint8_t>();
                    const std::vector<std::byte> bytes = pattern(whole * leaf_size_bytes + rest);
                    const TensorSpec spec{DType::u8, Shape{static_cast<int64_t>(bytes.size())}};
                    std::vector<Digest> leaves;
                    for (uint64_t i = 0; i < leaf_count(bytes.size()); ++i) {
                        const uint64_t first = i * leaf_size_bytes;
                        leaves.push_back(leaf_digest(
                            key, i,
                            std::span(bytes).subspan(
                                first, std::min<uint64_t>(leaf_size_bytes, bytes.size() - first))));
                    }
                    const Digest expected = root_digest(key, spec, leaves);
                    QCOMPARE(tensor_digest(key, spec, bytes).hex(), expected.hex());
                    DigestStream stream(key, spec);
                    stream.add(bytes);
                    QCOMPARE(stream.finish().hex(), expected.hex());
                }
    }

    void sixteen_messages_side_by_side_give_what_each_gives_alone() {
        constexpr size_t blocks = 3;
        const std::vector<std::byte> bytes = pattern(sha256_most_lanes * 100 + blocks * sha256_block_bytes);
        std::array<const std::byte*, sha256_most_lanes> messages{};
        for (size_t lane = 0; lane < messages.size(); ++lane) messages[lane] = bytes.data() + lane * 99;
        std::array<std::byte, sha256_block_bytes> padding{};
        padding[0] = std::byte{0x80};
        padding[62] = std::byte{blocks * sha256_block_bytes * 8 / 256};
        padding[63] = std::byte{blocks * sha256_block_bytes * 8 % 256};
        std::array<const std::byte*, sha256_most_lanes> paddings{};
        paddings.fill(padding.data());
        Sha256Lanes state = sha256_lanes_start();
        sha256_lanes_add(state, messages, 1);
        std::array<const std::byte*, sha256_most_lanes> rests = messages;
        for (const std::byte*& rest : rests) rest += sha256_block_bytes;
        sha256_lanes_add(state, rests, blocks - 1);
        sha256_lanes_add(state, paddings, 1);
        for (size_t lane = 0; lane < messages.size(); ++lane) {
            const Digest alone =
                sha256({reinterpret_cast<const uint8_t*>(messages[lane]), blocks * sha256_block_bytes});
            for (size_t i = 0; i < 32; ++i)
                QCOMPARE(static_cast<uint8_t>(state[i / 4][lane] >> (24 - 8 * (i % 4))), alone.bytes[i]);
        }
    }

    void a_stream_refuses_more_and_fewer_bytes_than_its_spec_says() {
        const TensorSpec spec{DType::f32, Shape{2}};
        const std::vector<std::byte> bytes(9);
        DigestStream stream({}, spec);
        VERIFY_REFUSED(stream.add(bytes), "expected 8 bytes for f32[2], found more");
        stream.add(std::span(bytes).first(5));
        VERIFY_REFUSED(stream.finish(), "expected 8 bytes for f32[2], found 3 fewer");
        VERIFY_REFUSED(stream.add(std::span(bytes).first(4)), "found more");
        stream.add(std::span(bytes).first(3));
        QCOMPARE(stream.finish().hex(), tensor_digest({}, spec, std::span(bytes).first(8)).hex());
    }

    void every_bit_of_the_bytes_counts() {
        const TensorSpec spec{DType::u8, Shape{40}};
        std::vector<std::byte> bytes = pattern(40);
        const Digest expected = tensor_digest({}, spec, bytes);
        for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
            bytes[bit / 8] ^= std::byte{1} << (bit % 8);
            QVERIFY(tensor_digest({}, spec, bytes) != expected);
            bytes[bit / 8] ^= std::byte{1} << (bit % 8);
        }
    }

    void equal_bytes_of_another_shape_or_type_differ() {
        const std::vector<std::byte> bytes = pattern(24);
        std::vector<Digest> digests;
        for (const TensorSpec& spec :
             {TensorSpec{DType::u8, Shape{24}}, TensorSpec{DType::i8, Shape{24}},
              TensorSpec{DType::u8, Shape{24, 1}}, TensorSpec{DType::u8, Shape{1, 24}},
              TensorSpec{DType::u8, Shape{4, 6}}, TensorSpec{DType::u8, Shape{6, 4}},
              TensorSpec{DType::f32, Shape{6}}, TensorSpec{DType::i32, Shape{6}},
              TensorSpec{DType::f64, Shape{3}}})
            digests.push_back(tensor_digest({}, spec, bytes));
        std::ranges::sort(digests);
        QVERIFY(std::ranges::adjacent_find(digests) == digests.end());
    }

    void empty_tensors_of_different_shapes_differ() {
        QVERIFY(hex_of({}, {DType::u8, Shape{0}}) != hex_of({}, {DType::u8, Shape{0, 5}}));
        QVERIFY(hex_of({}, {DType::u8, Shape{5, 0}}) != hex_of({}, {DType::u8, Shape{0, 5}}));
    }

    void every_key_gives_another_digest_and_none_is_the_plain_one() {
        const TensorSpec spec{DType::u8, Shape{10}};
        std::vector<uint8_t> key = bytes_0_to_31();
        const std::string plain = hex_of({}, spec);
        const std::string keyed = hex_of(key, spec);
        QVERIFY(keyed != plain);
        key[31] ^= 1;
        QVERIFY(hex_of(key, spec) != keyed);
        QVERIFY(hex_of(std::vector<uint8_t>(32), spec) != plain);
    }

    void a_leaf_is_bound_to_its_place() {
        const std::vector<std::byte> bytes = pattern(10);
        QVERIFY(leaf_digest({}, 0, bytes) != leaf_digest({}, 1, bytes));
    }

    void a_lone_leaf_at_the_end_is_promoted_unchanged() {
        // Three leaves: the third stands beside the node of the first two.
        const TensorSpec spec{DType::u8, Shape{static_cast<int64_t>(2 * leaf_size_bytes + 1)}};
        const std::vector<std::byte> bytes = pattern(spec.size_bytes());
        std::vector<Digest> leaves;
        for (uint64_t i = 0; i < 3; ++i)
            leaves.push_back(leaf_digest(
                {}, i, std::span(bytes).subspan(i * leaf_size_bytes, i < 2 ? leaf_size_bytes : 1)));
        const auto node = [](const Digest& left, const Digest& right) {
            std::vector<uint8_t> input{1};
            input.insert(input.end(), left.bytes.begin(), left.bytes.end());
            input.insert(input.end(), right.bytes.begin(), right.bytes.end());
            return sha256(input);
        };
        const Digest top = node(node(leaves[0], leaves[1]), leaves[2]);
        std::vector<uint8_t> root{2, 6, 1};  // root, u8, rank 1
        for (int byte = 0; byte < 8; ++byte)
            root.push_back(static_cast<uint8_t>(spec.size_bytes() >> (8 * byte)));
        root.insert(root.end(), top.bytes.begin(), top.bytes.end());
        QCOMPARE(root_digest({}, spec, leaves).hex(), sha256(root).hex());
    }

    void hexadecimal_text_is_read_back_and_nothing_else() {
        const Digest digest = tensor_digest({}, {DType::u8, Shape{3}}, pattern(3));
        QVERIFY(Digest::from_hex(digest.hex()) == digest);
        QVERIFY(!Digest::from_hex(digest.hex().substr(1)).has_value());
        QVERIFY(!Digest::from_hex(digest.hex() + "0").has_value());
        QVERIFY(!Digest::from_hex(std::string(63, '0') + "g").has_value());
        QVERIFY(!Digest::from_hex(std::string(63, '0') + "A").has_value());
        QVERIFY(!Digest::from_hex("").has_value());
    }
};

QTEST_APPLESS_MAIN(TestDigest)
#include "test_digest.moc"
