// A device: loads ahead, computes, stores behind, and keeps its memory limit.
#include <QTemporaryDir>
#include <QtTest>
#include <condition_variable>
#include <fstream>
#include <mutex>

#include "app/worker/device.hpp"
#include "tests/unit/worker/fake_lab.hpp"
#include "tests/unit/worker/test_engine.hpp"

using namespace goblin;
using namespace goblin::test;
using namespace goblin::worker;
namespace fs = std::filesystem;
using Kind = ComputeOutcome::Kind;

namespace {

// Collects outcomes from the device's threads.
class Outcomes {
  public:
    Device::Done keep(const AssignmentId& id) {
        return [this, id](ComputeOutcome outcome) {
            const std::lock_guard lock(mutex_);
            outcomes_.emplace(id, std::move(outcome));
            changed_.notify_all();
        };
    }
    ComputeOutcome wait(const AssignmentId& id) {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, std::chrono::seconds(20), [&] { return outcomes_.contains(id); }))
            throw std::runtime_error("no outcome");
        return outcomes_.at(id);
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<AssignmentId, ComputeOutcome> outcomes_;
};

AssignmentId id_of(uint8_t number) {
    AssignmentId id{};
    id[0] = number;
    return id;
}

}  // namespace

class TestDevice : public QObject {
    Q_OBJECT
    std::unique_ptr<QTemporaryDir> folder_;
    std::shared_ptr<EngineMood> mood_;

    fs::path folder() const { return folder_->path().toStdString(); }
    std::unique_ptr<Device> device(uint64_t memory_bytes = uint64_t{1} << 30) {
        DeviceOffer offer;
        offer.memory_bytes = memory_bytes;
        return std::make_unique<Device>(std::make_unique<TestEngine>(mood_), offer, memory_bytes);
    }
    // An order for a · b whose inputs lie in files.
    ComputeOrder order(uint8_t number, const Tensor& a, const Tensor& b) {
        ComputeOrder made;
        made.task = {Digest{}, id_of(number)};
        made.key.fill(number);
        made.graph = product_graph(a.spec(), b.spec());
        for (const Tensor* input : {&a, &b}) {
            const Digest digest = tensor_digest({}, *input);
            const fs::path file = folder() / digest.hex();
            if (!fs::exists(file))  // the device may be reading it for another order
                std::ofstream(file, std::ios::binary)
                    .write(reinterpret_cast<const char*>(input->bytes().data()),
                           static_cast<std::streamsize>(input->size_bytes()));
            made.inputs.push_back({input->spec(), {Digest{}, digest}, file, std::nullopt, true});
        }
        made.outputs_folder = folder();
        made.before = [] {};
        return made;
    }
    static Tensor product(const Tensor& a, const Tensor& b) {
        std::vector<Tensor> inputs;
        inputs.push_back(a.clone());
        inputs.push_back(b.clone());
        return std::move(make_reference_engine()->run(product_graph(a.spec(), b.spec()), inputs, {})[0]);
    }

  private slots:
    void init() {
        folder_ = std::make_unique<QTemporaryDir>();
        mood_ = std::make_shared<EngineMood>();
    }

    void a_small_output_stays_in_memory_with_its_keyed_digest() {
        Outcomes outcomes;
        const auto cpu = device();
        const Tensor a = numbers({10, 20}, 1);
        const Tensor b = numbers({20, 30}, 2);
        ComputeOrder ordered = order(1, a, b);
        const SecretKey key = ordered.key;
        cpu->submit(std::move(ordered), outcomes.keep(id_of(1)));
        const ComputeOutcome outcome = outcomes.wait(id_of(1));
        QCOMPARE(outcome.kind, Kind::computed);
        QVERIFY(!outcome.computed.in_files);
        const Tensor expected = product(a, b);
        QVERIFY(tensor_of(frame_of(FrameMessage(outcome.computed.outputs.at(0)))).same_bits(expected));
        QVERIFY(outcome.computed.digests.at(0) == tensor_digest(key, expected));
    }

    void a_large_output_goes_to_a_file() {
        Outcomes outcomes;
        const auto cpu = device();
        const Tensor a = numbers({300, 2}, 1);
        const Tensor b = numbers({2, 300}, 2);
        cpu->submit(order(1, a, b), outcomes.keep(id_of(1)));
        const ComputeOutcome outcome = outcomes.wait(id_of(1));
        QVERIFY(outcome.computed.in_files);
        const Tensor expected = product(a, b);
        Tensor found(expected.spec());
        File::open_to_read(output_file(folder(), id_of(1), 0)).read_at(0, found.bytes());
        QVERIFY(found.same_bits(expected));
    }

    void two_tasks_that_share_an_input_give_the_right_bits() {
        Outcomes outcomes;
        const auto cpu = device();
        const Tensor a = numbers({10, 20}, 1);
        for (uint8_t number = 1; number <= 6; ++number) {
            while (!cpu->has_room()) QTest::qSleep(1);
            cpu->submit(order(number, a, numbers({20, 30}, number)), outcomes.keep(id_of(number)));
        }
        for (uint8_t number = 1; number <= 6; ++number) {
            const ComputeOutcome outcome = outcomes.wait(id_of(number));
            QVERIFY(tensor_of(frame_of(FrameMessage(outcome.computed.outputs.at(0))))
                        .same_bits(product(a, numbers({20, 30}, number))));
        }
    }

    void the_next_task_is_loaded_while_one_computes() {
        Outcomes outcomes;
        const auto cpu = device();
        mood_->takes_ms = 300;
        cpu->submit(order(1, numbers({4, 4}, 1), numbers({4, 4}, 2)), outcomes.keep(id_of(1)));
        QTRY_COMPARE(mood_->running, 1);
        ComputeOrder next = order(2, numbers({4, 4}, 3), numbers({4, 4}, 4));
        const auto files = next.inputs;
        cpu->submit(std::move(next), outcomes.keep(id_of(2)));
        QVERIFY(!cpu->has_room());
        QTest::qSleep(100);  // it is read now: the files are not needed any more
        for (const ComputeInput& input : files) fs::remove(input.file);
        QCOMPARE(outcomes.wait(id_of(2)).kind, Kind::computed);
    }

    void cancelling_stops_within_a_moment() {
        Outcomes outcomes;
        const auto cpu = device();
        mood_->takes_ms = 60'000;
        for (const uint8_t number : {1, 2})
            cpu->submit(order(number, numbers({4, 4}, 1), numbers({4, 4}, 2)), outcomes.keep(id_of(number)));
        QTRY_COMPARE(mood_->running, 1);
        for (const uint8_t number : {2, 1}) {
            cpu->cancel({Digest{}, id_of(number)});
            const ComputeOutcome outcome = outcomes.wait(id_of(number));
            QCOMPARE(outcome.kind, Kind::handed_back);
            QVERIFY(outcome.stopped);
        }
        QTRY_VERIFY(cpu->idle());
        QCOMPARE(cpu->overdue().count(), 0);
    }

    void what_takes_too_long_has_failed() {
        Outcomes outcomes;
        const auto cpu = device();
        mood_->takes_ms = 60'000;
        ComputeOrder slow = order(1, numbers({4, 4}, 1), numbers({4, 4}, 2));
        slow.longest_ms = 100;
        cpu->submit(std::move(slow), outcomes.keep(id_of(1)));
        const ComputeOutcome outcome = outcomes.wait(id_of(1));
        QCOMPARE(outcome.kind, Kind::failed);
        QVERIFY(!outcome.stopped);
    }

    void a_damaged_or_missing_input_is_named_and_nothing_computed() {
        Outcomes outcomes;
        const auto cpu = device();
        ComputeOrder damaged = order(1, numbers({40, 40}, 1), numbers({40, 40}, 2));
        std::fstream(damaged.inputs[0].file, std::ios::in | std::ios::out | std::ios::binary)
            .seekp(100)
            .put('x');
        fs::remove(damaged.inputs[1].file);
        const BlobName first = damaged.inputs[0].name;
        cpu->submit(std::move(damaged), outcomes.keep(id_of(1)));
        const ComputeOutcome outcome = outcomes.wait(id_of(1));
        QCOMPARE(outcome.kind, Kind::spoiled_input);
        QCOMPARE(outcome.spoiled.size(), size_t{2});
        QVERIFY(outcome.spoiled[0] == first);
        QCOMPARE(mood_->runs, 0);
    }

    void a_task_above_the_memory_limit_is_handed_back_and_the_next_one_runs() {
        Outcomes outcomes;
        const auto cpu = device(100'000);
        QVERIFY(cpu->why_not(product_graph({DType::f32, Shape{200, 200}}, {DType::f32, Shape{200, 200}})));
        cpu->submit(order(1, numbers({200, 200}, 1), numbers({200, 200}, 2)), outcomes.keep(id_of(1)));
        cpu->submit(order(2, numbers({10, 10}, 1), numbers({10, 10}, 2)), outcomes.keep(id_of(2)));
        const ComputeOutcome outcome = outcomes.wait(id_of(1));
        QCOMPARE(outcome.kind, Kind::handed_back);
        QVERIFY(outcome.reason.find("of memory") != std::string::npos);
        QCOMPARE(outcomes.wait(id_of(2)).kind, Kind::computed);
    }

    void tasks_that_fit_one_by_one_only_run_one_by_one() {
        Outcomes outcomes;
        const auto cpu = device(500'000);
        mood_->extra_memory_bytes = 300'000;
        mood_->takes_ms = 50;
        for (uint8_t number = 1; number <= 4; ++number) {
            while (!cpu->has_room()) QTest::qSleep(1);
            cpu->submit(order(number, numbers({100, 100}, number), numbers({100, 100}, number + 10)),
                        outcomes.keep(id_of(number)));
        }
        for (uint8_t number = 1; number <= 4; ++number)
            QCOMPARE(outcomes.wait(id_of(number)).kind, Kind::computed);
    }

    void a_device_without_exact_floats_takes_integers_only() {
        DeviceOffer offer;
        offer.takes_floats = false;
        const Device cpu(std::make_unique<TestEngine>(mood_), offer, uint64_t{1} << 30);
        QVERIFY(cpu.why_not(product_graph({DType::f32, Shape{2, 2}}, {DType::f32, Shape{2, 2}})));
        QVERIFY(!cpu.why_not(product_graph({DType::i32, Shape{2, 2}}, {DType::i32, Shape{2, 2}})));
    }

    void a_disk_that_takes_no_output_hands_the_task_back_and_leaves_no_file() {
        Outcomes outcomes;
        const auto cpu = device();
        ComputeOrder ordered = order(1, numbers({300, 2}, 1), numbers({2, 300}, 2));
        ordered.outputs_folder = folder() / "no such folder";
        cpu->submit(std::move(ordered), outcomes.keep(id_of(1)));
        const ComputeOutcome outcome = outcomes.wait(id_of(1));
        QCOMPARE(outcome.kind, Kind::handed_back);
        QVERIFY(outcome.out_of_disk);
        QVERIFY(outcome.computed.digests.empty());
    }

    void the_journal_comes_before_computing_and_its_failure_hands_the_task_back() {
        Outcomes outcomes;
        const auto cpu = device();
        ComputeOrder ordered = order(1, numbers({4, 4}, 1), numbers({4, 4}, 2));
        ordered.before = [this] {
            if (mood_->runs == 0) throw Error(ErrorKind::io, "the disk is full");
        };
        cpu->submit(std::move(ordered), outcomes.keep(id_of(1)));
        const ComputeOutcome outcome = outcomes.wait(id_of(1));
        QCOMPARE(outcome.kind, Kind::handed_back);
        QCOMPARE(outcome.reason, std::string("the disk is full"));
        QCOMPARE(mood_->runs, 0);
    }

    void ending_stops_what_is_inside() {
        Outcomes outcomes;
        mood_->takes_ms = 60'000;
        {
            const auto cpu = device();
            for (const uint8_t number : {1, 2})
                cpu->submit(order(number, numbers({4, 4}, 1), numbers({4, 4}, 2)),
                            outcomes.keep(id_of(number)));
            QTRY_COMPARE(mood_->running, 1);
        }
        for (const uint8_t number : {1, 2}) QVERIFY(outcomes.wait(id_of(number)).stopped);
    }
};

QTEST_GUILESS_MAIN(TestDevice)
#include "test_device.moc"
