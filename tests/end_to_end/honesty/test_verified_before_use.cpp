// No number is used before it is verified: while contributors lie at random, the unfinished output is looked
// at after every step. Each element in it is empty or exactly right, and no
// fewer tiles are there than were accepted.
#include <QTest>

#include <algorithm>
#include <cstring>
#include <random>

#include "core/tensor/npy_reader.hpp"
#include "tests/end_to_end/honesty/lab_with_honest_ones.hpp"
#include "tests/support/test_form.hpp"

namespace goblin::test {

namespace {

constexpr int64_t tile_edge = 8;
constexpr int64_t tiles_a_side = 6;
constexpr int64_t tasks = tiles_a_side * tiles_a_side;
constexpr int most_rounds = 20'000;

using Random = std::mt19937_64;

constexpr size_t liars_count = 4;

// One wrong bit, wrong numbers here and there, or other numbers altogether. Each liar spoils bytes of its
// own: liars that agreed by chance would conspire, and against that this policy promises less.
void spoil(Tensor& numbers, size_t liar, Random& random) {
    const std::span<std::byte> bytes = numbers.bytes();
    const auto own_byte = [&]() -> std::byte& {
        return bytes[random() % (bytes.size() / liars_count) * liars_count + liar];
    };
    const auto other_than_zero = [&] { return static_cast<std::byte>(1 + random() % 255); };
    switch (random() % 4) {
        case 0:
            own_byte() ^= static_cast<std::byte>(1u << random() % 8);
            break;
        case 1:
            for (size_t i = liar; i < bytes.size(); i += liars_count * (1 + random() % 20))
                bytes[i] ^= other_than_zero();
            break;
        case 2:
            std::memset(bytes.data(), 0, bytes.size());
            own_byte() = other_than_zero();
            break;
        default:
            for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    }
}

// Each of its own chance, so that nobody lies alike.
Contributor::Lie at_random(size_t liar, uint64_t seed) {
    return [liar, random = std::make_shared<Random>(seed)](Work& work) {
        if ((*random)() % 2 == 0) spoil(work.outputs[0], liar, *random);
    };
}

// What the unfinished output holds: how many tiles are there, and how many elements are neither right nor
// empty. A tile may be looked at while it is written.
struct Look {
    std::vector<bool> right = std::vector<bool>(tasks, true);
    int64_t right_tiles = 0;
    int64_t wrong_elements = 0;
};

Look look_at(const std::filesystem::path& partial, const Tensor& expected) {
    Look look;
    const Tensor found = NpyReader(partial).read_all();
    const size_t size = size_of(expected.dtype());
    const std::vector<std::byte> empty(size);
    const int64_t edge = tile_edge * tiles_a_side;
    for (int64_t i = 0; i < edge * edge; ++i) {
        const std::byte* const element = found.bytes().data() + static_cast<size_t>(i) * size;
        if (std::memcmp(element, expected.bytes().data() + static_cast<size_t>(i) * size, size) == 0)
            continue;
        look.right[static_cast<size_t>(i / edge / tile_edge * tiles_a_side + i % edge / tile_edge)] = false;
        look.wrong_elements += std::memcmp(element, empty.data(), size) != 0;
    }
    look.right_tiles = std::count(look.right.begin(), look.right.end(), true);
    return look;
}

}  // namespace

class TestVerifiedBeforeUse : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() { random_.seed(printed_seed()); }

    void every_accepted_tile_is_right_while_contributors_lie_at_random_data() {
        QTest::addColumn<QString>("policy");
        QTest::addColumn<int>("dtype");
        QTest::newRow("redundant") << QString("redundant") << static_cast<int>(DType::f32);
        QTest::newRow("redundant, integers") << QString("redundant") << static_cast<int>(DType::i64);
        QTest::newRow("recompute") << QString("recompute") << static_cast<int>(DType::f32);
        QTest::newRow("product, integers") << QString("product") << static_cast<int>(DType::i32);
    }
    void every_accepted_tile_is_right_while_contributors_lie_at_random() {
        QFETCH(QString, policy);
        QFETCH(int, dtype);
        LabWithHonestOnes all;
        std::vector<std::unique_ptr<Contributor>> liars;
        for (size_t i = 0; i < liars_count; ++i)
            liars.push_back(
                std::make_unique<Contributor>(all.lab, fmt::format("liar {}", i), at_random(i, random_())));
        const int64_t edge = tile_edge * tiles_a_side;
        Job job(all, {.policy = policy.toStdString(),
                      .dtype = static_cast<DType>(dtype),
                      .rows = edge,
                      .cols = edge,
                      .tile = fmt::format("{}x{}", tile_edge, tile_edge)});
        // Liars go first, so that they get their share although each lie makes them wait.
        std::vector<Contributor*> crew;
        for (auto& liar : liars) crew.push_back(liar.get());
        crew.insert(crew.end(), {&all.alice, &all.bob});
        for (Contributor* each : crew) each->settings().tasks_at_once = 1;
        int64_t seen_accepted = 0;
        int64_t looks_after_acceptance = 0;
        for (int round = 0; round < most_rounds && !over(all, job); ++round) {
            crew[static_cast<size_t>(round) % crew.size()]->step();
            const int64_t accepted = all.lab.job(job.id())["accepted"].get<int64_t>();
            const auto partial = job.files().partial();
            if (!partial) continue;
            const Look look = look_at(*partial, job.files().expected());
            QVERIFY2(look.wrong_elements == 0, job.history().c_str());
            QVERIFY2(look.right_tiles >= accepted,
                     qPrintable(QString("%1 accepted, %2 there").arg(accepted).arg(look.right_tiles)));
            looks_after_acceptance += accepted > seen_accepted;
            seen_accepted = accepted;
        }
        VERIFY_EMPTY(job.what_is_wrong(all.lab.job(job.id())));
        QVERIFY2(looks_after_acceptance >= tasks / 2, qPrintable(QString::number(looks_after_acceptance)));
        size_t convictions = 0;
        for (const auto& liar : liars) convictions += liar->convictions.size();
        QVERIFY2(convictions >= 4, qPrintable(QString::number(convictions)));
    }

  private:
    static bool over(const LabWithHonestOnes& all, const Job& job) {
        return all.lab.is_over(job.id());
    }

    Random random_;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestVerifiedBeforeUse)
#include "test_verified_before_use.moc"
