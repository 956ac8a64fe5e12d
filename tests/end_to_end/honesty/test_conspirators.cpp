// Ten contributors, three of whom lie: each for itself, or all alike. What the policies promise holds,
// whoever asks more often.
#include <QTest>

#include <array>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "core/tensor/npy_reader.hpp"
#include "tests/end_to_end/honesty/lab_with_honest_ones.hpp"
#include "tests/support/hardly_ever.hpp"

namespace goblin::test {

namespace {

constexpr int64_t tile_edge = 4;  // 64 bytes: the least that is believed without computing it again
constexpr int64_t tiles_a_side = 24;
constexpr uint64_t tasks = tiles_a_side * tiles_a_side;
constexpr size_t conspirators_count = 3;
constexpr size_t contributors_count = 10;

// An honest one needs time for its numbers; who lies needs none.
void take_time(Work&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void add(Work& work, float wrong) {
    for (float& x : work.outputs[0].as<float>()) x += wrong;
}

class Ten {
  public:
    explicit Ten(const std::vector<Contributor::Lie>& lies) {
        for (size_t i = 0; i < contributors_count; ++i) {
            const bool lying = i < lies.size();
            Contributor::Lie habit = take_time;
            if (lying) habit = lies[i];
            all_.push_back(std::make_unique<Contributor>(
                lab, fmt::format("{} {}", lying ? "liar" : "honest", i), std::move(habit)));
            // Liars take as much as they can get.
            all_.back()->settings().tasks_at_once = lying ? 256 : 4;
        }
    }

    LabProcess lab;

    Contributor& operator[](size_t i) { return *all_[i]; }

    // All at work until the job is over, liars first; the job's last status.
    lab::Json bring_to_its_end(uint64_t job) {
        Crew crew;
        for (auto& each : all_) crew.add(*each);
        lab::Json status = lab.wait_for_job(job, 120'000);
        crew.rest();
        return status;
    }
    // The lab's record of one.
    lab::Json record(const Contributor& contributor) const {
        for (const lab::Json& node : lab.ask("node.list"))
            if (node["name"] == contributor.name()) return lab.ask("node.show", {{"id", node["id"]}});
        return {};
    }
    // Empty when exactly the first `liars` are known as such.
    std::string who_is_wrongly_known(size_t liars = conspirators_count) {
        std::string text;
        for (size_t i = 0; i < contributors_count; ++i) {
            const lab::Json shown = record(*all_[i]);
            const bool convicted = shown["disagreed"].get<int>() > 0 && !shown["disagreements"].empty();
            if (convicted != (i < liars)) text += shown.dump() + "\n";
        }
        return text;
    }

  private:
    std::vector<std::unique_ptr<Contributor>> all_;
};

uint64_t wrong_tiles(const ProductFiles& files) {
    const Tensor found = NpyReader(files.output()).read_all();
    const int64_t edge = tile_edge * tiles_a_side;
    std::set<int64_t> wrong;
    for (int64_t i = 0; i < edge * edge; ++i)
        if (std::memcmp(found.bytes().data() + i * 4, files.expected().bytes().data() + i * 4, 4) != 0)
            wrong.insert(i / edge / tile_edge * tiles_a_side + i % edge / tile_edge);
    return wrong.size();
}

ProductFiles square(const LabProcess& lab) {
    const int64_t edge = tile_edge * tiles_a_side;
    return {lab.files(), "square", random_matrix(DType::f32, edge, 3, 1),
            random_matrix(DType::f32, 3, edge, 2)};
}

uint64_t submit(const LabProcess& lab, const ProductFiles& files, const std::string& policy) {
    return lab.submit_product(files.a(), files.b(), files.output(), {{"verify", policy}},
                              fmt::format("{}x{}", tile_edge, tile_edge));
}

}  // namespace

class TestConspirators : public QObject {
    Q_OBJECT

  private slots:
    void three_that_lie_independently_change_no_bit_under_redundant() {
        Ten ten({[](Work& work) { add(work, 1); }, [](Work& work) { add(work, 2); },
                 [](Work& work) { work.outputs[0].bytes()[0] ^= std::byte{1}; }});
        const ProductFiles files = square(ten.lab);
        const uint64_t job = submit(ten.lab, files, "redundant");
        QCOMPARE(ten.bring_to_its_end(job)["state"].get<std::string>(), std::string("done"));
        VERIFY_EMPTY(files.wrong_output());
        VERIFY_EMPTY(ten.who_is_wrongly_known());
    }

    void three_that_lie_alike_change_no_bit_under_recompute() {
        const auto lie = [](Work& work) { add(work, 1); };
        Ten ten({lie, lie, lie});
        const ProductFiles files = square(ten.lab);
        const uint64_t job = submit(ten.lab, files, "recompute");
        QCOMPARE(ten.bring_to_its_end(job)["state"].get<std::string>(), std::string("done"));
        VERIFY_EMPTY(files.wrong_output());
        VERIFY_EMPTY(ten.who_is_wrongly_known());
    }

    // The printed rate is c² = 9 % for three of ten. Were each task wrong with exactly that probability, the
    // bound would be reached with a chance below 1e-9.
    void three_that_lie_alike_are_wrong_at_most_at_the_printed_rate_under_redundant() {
        const auto lie = [](Work& work) { add(work, 1); };
        Ten ten({lie, lie, lie});
        const ProductFiles files = square(ten.lab);
        const uint64_t job = submit(ten.lab, files, "redundant");
        QCOMPARE(ten.bring_to_its_end(job)["state"].get<std::string>(), std::string("done"));
        const uint64_t wrong = wrong_tiles(files);
        const uint64_t bound = hardly_ever(tasks, 0.09);
        QVERIFY2(wrong < bound, qPrintable(QString("%1 of %2 tasks are wrong, expected fewer than %3")
                                               .arg(wrong)
                                               .arg(tasks)
                                               .arg(bound)));
        VERIFY_EMPTY(ten.who_is_wrongly_known());
    }

    // They compute honestly, so that nobody sends them away, and would lie only where they are alone. They
    // ask as often as the network lets them and claim to hold all blobs. Three of ten make one pair in 15.
    void three_that_wait_for_each_other_are_together_no_more_often_than_their_share_of_pairs() {
        std::array<std::set<std::vector<uint8_t>>, conspirators_count> held;
        std::vector<Contributor::Lie> watching;
        for (auto& own : held)
            watching.emplace_back([&own](Work& work) { own.insert(encode_message(work.grant.task)); });
        Ten ten(watching);
        const ProductFiles files = square(ten.lab);
        const uint64_t job = submit(ten.lab, files, "redundant");
        QCOMPARE(ten.bring_to_its_end(job)["state"].get<std::string>(), std::string("done"));
        VERIFY_EMPTY(files.wrong_output());
        uint64_t together = 0;
        for (size_t i = 0; i < conspirators_count; ++i)
            for (size_t other = i + 1; other < conspirators_count; ++other)
                for (const auto& task : held[i]) together += held[other].contains(task);
        const uint64_t bound = hardly_ever(tasks, 1.0 / 15);
        QVERIFY2(together < bound,
                 qPrintable(
                     QString("%1 of %2 tasks, expected fewer than %3").arg(together).arg(tasks).arg(bound)));
        VERIFY_EMPTY(ten.who_is_wrongly_known(0));
        QVERIFY2(together > 0, "expected conspirators to meet by chance");
    }
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestConspirators)
#include "test_conspirators.moc"
