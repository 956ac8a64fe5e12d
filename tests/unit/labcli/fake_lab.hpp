// The scheduler with everything around it replaced: a clock that a test sets, draws from a seed, a workshop
// that works when it is told to, a journal in memory, and jobs of tiny products that exist in memory only.
#pragma once

#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "core/arithmetic/contract.hpp"
#include "core/engine/reference/reference_engine.hpp"
#include "core/error.hpp"
#include "core/work/identity.hpp"
#include "labcli/schedule/exchange_desk.hpp"
#include "labcli/verify/verifier.hpp"
#include "tests/support/product_files.hpp"

namespace goblin::lab {

// `tasks` products of a row panel [edge, depth] with one common B [depth, edge].
class FakePlan : public Plan {
  public:
    explicit FakePlan(uint64_t tasks, DType dtype = DType::i32, int64_t edge = 4, int64_t depth = 3)
        : tasks_(tasks),
          a_(test::random_matrix(dtype, static_cast<int64_t>(tasks) * edge, depth, 1)),
          b_(test::random_matrix(dtype, depth, edge, 2)),
          panel_{dtype, Shape{edge, depth}} {}

    PlanSummary summary() const override {
        PlanSummary summary;
        summary.tasks = tasks_;
        summary.has_floats = dtype_info(panel_.dtype).is_float;
        summary.memory_per_task_bytes = memory_per_task_bytes;
        summary.text = "a fake";
        return summary;
    }
    uint64_t task_count() const override { return tasks_; }
    Graph graph(uint64_t) const override {
        Graph graph = product_graph(panel_, b_.spec());
        graph.outputs.resize(copies, graph.outputs[0]);
        return graph;
    }
    std::vector<SliceNumber> slices(uint64_t task) const override { return {2 * task, 1}; }
    TensorSpec slice_spec(SliceNumber slice) const override { return slice % 2 == 0 ? panel_ : b_.spec(); }
    SliceOrigin slice_origin(SliceNumber slice) const override {
        return {file,
                {static_cast<int64_t>(slice), 0, slice_spec(slice).shape[0], slice_spec(slice).shape[1]}};
    }
    void read_slice(SliceNumber slice, uint64_t offset_bytes, std::span<std::byte> target) const override {
        ++reads;
        std::memcpy(target.data(), bytes_of(slice) + offset_bytes, target.size());
    }
    void check_inputs() const override {
        if (inputs_changed) throw Error(ErrorKind::input, "expected the file as it was, found it changed");
    }
    void merge(uint64_t task, std::span<const Tensor> outputs) override {
        merged.insert_or_assign(task, outputs[0].clone());
    }
    void finish() override { finished = true; }
    void discard() override { discarded = true; }
    void sync() override {}
    bool is_product() const override { return copies == 1; }
    std::unique_ptr<MatrixSource> slice_matrix(SliceNumber slice) const override {
        const TensorSpec spec = slice_spec(slice);
        return std::make_unique<MemoryMatrix>(spec.dtype, spec.shape[0], spec.shape[1], bytes_of(slice),
                                              spec.shape[1]);
    }

    // What the contract says.
    Tensor right_answer(uint64_t task) const {
        std::vector<Tensor> inputs;
        for (const SliceNumber slice : slices(task))
            read_slice(slice, 0, inputs.emplace_back(slice_spec(slice)).bytes());
        return std::move(make_reference_engine()->run(graph(task), inputs, {})[0]);
    }

    size_t copies = 1;                   // of each task's output
    uint64_t memory_per_task_bytes = 0;  // as the plan says
    std::map<uint64_t, Tensor> merged;
    bool finished = false;
    bool discarded = false;
    bool inputs_changed = false;
    FileIdentity file;                        // that the operands are said to be in
    mutable std::atomic<uint64_t> reads = 0;  // of slices

  private:
    const std::byte* bytes_of(SliceNumber slice) const {
        return slice % 2 == 0 ? a_.bytes().data() + slice / 2 * panel_.size_bytes() : b_.bytes().data();
    }
    uint64_t tasks_;
    Tensor a_;
    Tensor b_;
    TensorSpec panel_;
};

// Keeps the last of everything.
class FakeJournal final : public Journal {
  public:
    void invitation(const Invitation& each) override { invitations[each.id] = each; }
    void volunteer(const Volunteer& each) override { volunteers[each.id] = each; }
    void computer(const Computer& each) override { computers[each.id] = each; }
    void job(const JobRecord& each) override { jobs[each.id] = each; }
    void forget_computer(ComputerId id) override { computers.erase(id); }
    void delete_job(JobId id) override { jobs.erase(id); }
    void assignment_issued(const Assignment& each) override { assignments[each.number] = each; }
    void assignment_changed(const Assignment& each) override { assignments[each.number] = each; }
    void task_accepted(JobId job, TaskNumber task, std::shared_ptr<Syncable>) override {
        accepted.insert({job, task});
    }
    void event(JobId, std::string text) override { events += text + "\n"; }
    void after_commit(std::function<void()> done) override { done(); }

    bool tells(const std::string& text) const { return events.find(text) != std::string::npos; }
    std::vector<Assignment> open_assignments(JobId job) const {
        std::vector<Assignment> open;
        for (const auto& [number, each] : assignments) {
            if (each.job != job || is_over(each.state)) continue;
            Assignment& stored = open.emplace_back(each);
            stored.outputs.reset();
            stored.asked_to_send = false;
        }
        return open;
    }

    std::map<InvitationId, Invitation> invitations;
    std::map<VolunteerId, Volunteer> volunteers;
    std::map<ComputerId, Computer> computers;
    std::map<JobId, JobRecord> jobs;
    std::map<AssignmentNumber, Assignment> assignments;
    std::set<std::pair<JobId, TaskNumber>> accepted;
    std::string events;
};

// Keeps the work until it is told to do it.
class FakeWorkshop final : public Workshop {
  public:
    void prepare(std::shared_ptr<Plan> plan, JobId, std::vector<TaskNumber> tasks,
                 std::function<void(PrepareAnswer)> done) override {
        keep([plan, tasks, done] {
            PrepareAnswer answer;
            try {
                plan->check_inputs();
                for (const TaskNumber task : tasks) answer.tasks.push_back(prepared(*plan, task));
            } catch (const Error& error) {
                answer.error = error.what();
            }
            done(std::move(answer));
        });
    }
    void verify(std::vector<VerifyRequest> requests,
                std::function<void(std::vector<VerifyAnswer>)> done) override {
        keep([this, requests, done] {
            std::vector<VerifyAnswer> answers;
            for (const VerifyRequest& request : requests) answers.push_back(verifier_.verify(request));
            verified += requests.size();
            done(std::move(answers));
        });
    }
    void compute(std::shared_ptr<Plan> plan, JobId job, TaskNumber task,
                 std::function<void(VerifyAnswer)> done) override {
        keep([this, plan, job, task, done] { done(verifier_.compute(*plan, job, task)); });
    }
    void check_inputs(std::shared_ptr<Plan> plan, std::function<void(std::string)> done) override {
        keep([plan, done] {
            std::string error;
            try {
                plan->check_inputs();
            } catch (const Error& changed) {
                error = changed.what();
            }
            done(error);
        });
    }
    void finish(std::shared_ptr<Plan> plan, std::function<void(std::string)> done) override {
        keep([plan, done] {
            plan->finish();
            done({});
        });
    }
    void discard(std::shared_ptr<Plan> plan) override { plan->discard(); }

    uint64_t verified = 0;
    // Work waits for this, as it would for another thread.
    void run() {
        while (!kept_.empty()) {
            const std::function<void()> work = std::move(kept_.front());
            kept_.pop_front();
            work();
        }
    }

  private:
    void keep(std::function<void()> work) { kept_.push_back(std::move(work)); }
    static PreparedTask prepared(const Plan& plan, TaskNumber number) {
        Task task;
        task.contract = contract_version;
        task.graph = plan.graph(number);
        for (const SliceNumber slice : plan.slices(number)) {
            Bytes& bytes =
                task.inputs.emplace_back().inline_bytes.emplace(plan.slice_spec(slice).size_bytes());
            plan.read_slice(slice, 0, std::as_writable_bytes(std::span(bytes)));
        }
        const GraphCost cost = cost_of(task.graph);
        PreparedTask result;
        result.number = number;
        result.outputs = task.outputs();
        result.flops = cost.flops;
        result.memory_bytes = cost.memory_bytes;
        result.message = std::make_shared<const TaskMessage>(message_of(task));
        return result;
    }

    std::deque<std::function<void()>> kept_;
    Verifier verifier_{1};
};

// A lab from the scheduler's point of view. Time stands still until the test moves it.
class FakeLab {
  public:
    explicit FakeLab(uint64_t seed = 1, DispatchRules rules = {})
        : random_(seed), dispatcher_(rules, environment_, contributors, book, board) {}

    uint64_t now_ms = 1'000'000;
    uint64_t look_ups = 0;  // of assignments that are over
    FakeJournal journal;
    FakeWorkshop workshop;

  private:
    std::mt19937_64 random_;
    Environment environment_{[this](uint64_t bound) { return random_() % bound; }, [this] { return now_ms; },
                             [this] { return now_ms + 1'000'000'000; }};

  public:
    Contributors contributors{{}, journal};
    AssignmentBook book{environment_, contributors, journal,
                        [this](AssignmentNumber number) -> std::optional<Assignment> {
                            ++look_ups;
                            const auto found = journal.assignments.find(number);
                            return found == journal.assignments.end() ? std::nullopt
                                                                      : std::optional(found->second);
                        },
                        1};
    JobBoard board{environment_, contributors, book, journal, workshop, [] {}};

  private:
    Dispatcher dispatcher_;

  public:
    ExchangeDesk desk{environment_, contributors, book, board, dispatcher_, journal};

    const Environment& environment() const { return environment_; }

    // A computer of a volunteer of its own, by an invitation of its own, approved.
    LiveComputer& join(bool trusted = false, InvitationId invitation = 0) {
        const uint64_t id = ++joined_;
        Volunteer volunteer;
        volunteer.id = id;
        volunteer.public_key[0] = static_cast<uint8_t>(id);
        volunteer.public_key[1] = static_cast<uint8_t>(id >> 8);
        volunteer.invitation = invitation != 0 ? invitation : id;
        volunteer.trusted = trusted;
        Computer computer;
        computer.id = id;
        computer.volunteer = id;
        computer.name = "computer " + std::to_string(id);
        computer.credential_hash.bytes = volunteer.public_key;
        contributors.load({}, {volunteer}, {computer});
        journal.volunteer(volunteer);
        return *contributors.computer(id);
    }
    // One that has proved itself before, so that it may hold several tasks.
    LiveComputer& join_proven(uint64_t quota = limits::open_assignments) {
        LiveComputer& computer = join();
        contributors.volunteer(computer.record.volunteer).agreed = 1;
        computer.quota = quota;
        return computer;
    }

    Job& submit(std::shared_ptr<FakePlan> plan, Policy policy, uint64_t replicas = 2) {
        JobRecord record;
        record.id = board.next_id();
        record.kind = "fake";
        record.specification = "{}";
        record.choice = {policy, Policy::automatic, replicas};
        record.tasks = plan->task_count();
        const JobId id = record.id;
        board.add(std::move(record), std::move(plan), {});
        run();
        return *board.find(id);
    }

    void run() { workshop.run(); }
    // Time passes in steps like the lab's own ticks.
    void pass_ms(uint64_t ms) {
        constexpr uint64_t step_ms = 500;
        for (uint64_t left = ms; left > 0; left -= std::min(left, step_ms)) {
            now_ms += std::min(left, step_ms);
            desk.expire();
            board.tick();
            run();
            desk.serve_waiting();
        }
    }

    // ---- what a contributor sends
    ExchangeRequest request(const LiveComputer& computer, uint64_t want_tasks,
                            std::vector<Result> results = {}) {
        ExchangeRequest message;
        message.session[0] = 1;
        message.results = std::move(results);
        message.want.devices.push_back({"cpu", "fake", uint64_t{10'000'000'000}, true, uint64_t{1} << 30});
        message.want.tasks = want_tasks;
        message.want.work_ms = 1'000'000;
        message.holding.assign(computer.open.begin(), computer.open.end());
        return message;
    }
    // Nothing when the lab keeps it waiting; throws Refusal.
    std::optional<ExchangeReply> exchange(LiveComputer& computer, ExchangeRequest message) {
        std::optional<ExchangeReply> reply;
        std::optional<Refusal> refusal;
        desk.exchange(computer, {computer.peer.address, computer.peer.address.empty()}, std::move(message),
                      [&](Answer<ExchangeReply> answer) {
                          if (auto* const said = std::get_if<ExchangeReply>(&answer))
                              reply = std::move(*said);
                          else
                              refusal = std::get<Refusal>(answer);
                      });
        run();
        if (refusal) throw *refusal;
        return reply;
    }
    // Asks for tasks; the grants.
    std::vector<Grant> take(LiveComputer& computer, uint64_t most = 1) {
        return exchange(computer, request(computer, most))->tasks;
    }
    Receipt tell(LiveComputer& computer, Result result) {
        return exchange(computer, request(computer, 0, {std::move(result)}))->acknowledged.at(0);
    }

    // ---- what it can say about a grant
    static Tensor honest(const Grant& grant) {
        const Task task = task_of(grant.task);
        std::vector<Tensor> inputs;
        for (size_t i = 0; i < task.inputs.size(); ++i) {
            Tensor& input = inputs.emplace_back(task.graph.inputs[i]);
            std::memcpy(input.bytes().data(), task.inputs[i].inline_bytes->data(), input.size_bytes());
        }
        return std::move(make_reference_engine()->run(task.graph, inputs, {})[0]);
    }
    static Tensor lie(const Grant& grant) {
        Tensor numbers = honest(grant);
        numbers.bytes()[0] ^= std::byte{0x55};
        return numbers;
    }
    static Result commitment(const Grant& grant, const Tensor& numbers) {
        Result result;
        result.assignment = grant.assignment;
        result.digests = {tensor_digest(grant.key, numbers)};
        return result;
    }
    static Result data(const Grant& grant, const Tensor& numbers) {
        Result result;
        result.assignment = grant.assignment;
        result.kind = ResultKind::data;
        result.outputs.push_back(message_of(frame_of(numbers)));
        return result;
    }
    static Result ending(const Grant& grant, ResultKind kind, const std::string& reason = "") {
        Result result;
        result.assignment = grant.assignment;
        result.kind = kind;
        result.reason = reason;
        return result;
    }
    bool asked(const Grant& grant) {
        const Assignment* const assignment = book.find(grant.assignment);
        return assignment != nullptr && assignment->asked_to_send &&
               assignment->state != AssignmentState::returned;
    }
    AssignmentState state(const Grant& grant) {
        return journal.assignments.at(number_of(grant.assignment)).state;
    }
    TaskNumber task(const Grant& grant) { return journal.assignments.at(number_of(grant.assignment)).task; }

    // Commits honestly to all of it and sends what is asked for, until nothing is asked any more.
    void do_honestly(LiveComputer& computer, const std::vector<Grant>& grants) {
        do_with(computer, grants, honest);
    }
    void do_with(LiveComputer& computer, const std::vector<Grant>& grants, Tensor (*numbers)(const Grant&)) {
        for (const Grant& grant : grants) tell(computer, commitment(grant, numbers(grant)));
        for (const Grant& grant : grants)
            if (asked(grant)) tell(computer, data(grant, numbers(grant)));
    }

  private:
    uint64_t joined_ = 0;
};

}  // namespace goblin::lab
