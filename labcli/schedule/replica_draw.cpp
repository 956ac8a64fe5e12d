// Gathers who is at hand and draws among them.
#include "labcli/schedule/replica_draw.hpp"

#include <algorithm>
#include <utility>

#include "core/work/limits.hpp"

namespace goblin::lab {

namespace {

// A computer is at hand while an exchange of it waits, for this long after its last one, and while it
// computes as long as a worker is silent at most.
constexpr uint64_t at_hand_ms = 1'500;
constexpr uint64_t at_hand_computing_ms = limits::exchange_wait_ms + 5'000;
// Draws made before anybody able is taken.
constexpr int draws = 8;
constexpr uint64_t full_weight = 1024;
// Of the tasks that a volunteer began, how many may wait for a further replica.
constexpr uint64_t most_waiting = 64;
constexpr uint64_t always_waiting = 4;
constexpr uint64_t begun_for_one_waiting = 16;
// How often one looks after those that were drawn.
constexpr uint64_t look_after_ms = 100;

}  // namespace

bool ReplicaDraw::at_hand(const LiveComputer& computer) const {
    const uint64_t now_ms = environment_.now_ms();
    if (computer.last_seen_ms == 0 || computer.devices.empty() || computer.waits(now_ms)) return false;
    const bool computes = computer.uncommitted > 0;
    if (!computes && computer.wanted_tasks == 0) return false;  // paused, or ending
    const uint64_t silent_ms = now_ms - computer.last_seen_ms;
    return computer.waiting || silent_ms <= (computes ? at_hand_computing_ms : at_hand_ms);
}

const std::vector<ReplicaDraw::Candidate>& ReplicaDraw::candidates() {
    if (std::exchange(gathered_, true)) return candidates_;
    candidates_.clear();
    places_.clear();
    usually_begun_.clear();
    for (const auto& [id, computer] : contributors_.computers()) {
        if (!at_hand(computer) || !contributors_.why_not(computer).empty()) continue;
        const auto [place, added] = places_.try_emplace(computer.record.volunteer, candidates_.size());
        if (added) candidates_.push_back({computer.record.volunteer, {}, 0, 0});
        Candidate& candidate = candidates_[place->second];
        candidate.computers.push_back(&computer);
        candidate.speed_flops = std::max(candidate.speed_flops, computer.speed_flops());
    }
    if (!candidates_.empty()) weigh();
    return candidates_;
}

void ReplicaDraw::weigh() {
    std::vector<uint64_t> speeds;
    for (const Candidate& candidate : candidates_) speeds.push_back(candidate.speed_flops);
    const auto middle = speeds.begin() + static_cast<ptrdiff_t>(speeds.size() / 2);
    std::nth_element(speeds.begin(), middle, speeds.end());
    const auto usual = static_cast<double>(std::max<uint64_t>(*middle, 1));
    uint64_t sum = 0;
    for (Candidate& candidate : candidates_) {
        const double share = std::min(static_cast<double>(candidate.speed_flops) / usual, 1.0);
        sum += 1 + static_cast<uint64_t>(share * (full_weight - 1));
        candidate.weight_up_to = sum;
    }
}

const LiveComputer* ReplicaDraw::able(const Candidate& candidate, const Job& job,
                                      const OpenTask& task) const {
    const auto found = std::find_if(candidate.computers.begin(), candidate.computers.end(),
                                    [&](const LiveComputer* each) { return eligible_(*each, job, task); });
    return found == candidate.computers.end() ? nullptr : *found;
}

bool ReplicaDraw::is_preferred(VolunteerId volunteer, const OpenTask& task) const {
    const InvitationId own = contributors_.volunteer(volunteer).invitation;
    return std::none_of(task.holders.begin(), task.holders.end(), [&](VolunteerId holder) {
        return contributors_.volunteer(holder).invitation == own;
    });
}

const LiveComputer* ReplicaDraw::draw_able(const Job& job, const OpenTask& task) const {
    for (int attempt = 0; attempt < draws; ++attempt) {
        const uint64_t drawn = environment_.draw(candidates_.back().weight_up_to);
        const auto candidate =
            std::upper_bound(candidates_.begin(), candidates_.end(), drawn,
                             [](uint64_t value, const Candidate& each) { return value < each.weight_up_to; });
        if (const LiveComputer* const computer = able(*candidate, job, task)) return computer;
    }
    const size_t start = environment_.draw(candidates_.size());
    for (size_t i = 0; i < candidates_.size(); ++i)
        if (const auto* const computer = able(candidates_[(start + i) % candidates_.size()], job, task))
            return computer;
    return nullptr;
}

const LiveComputer* ReplicaDraw::draw_one(const Job& job, const OpenTask& task) const {
    const LiveComputer* const first = draw_able(job, task);
    if (first == nullptr || is_preferred(first->record.volunteer, task)) return first;
    // Once and no more: so nobody's chance more than doubles, whatever links it holds.
    const LiveComputer* const second = draw_able(job, task);
    return is_preferred(second->record.volunteer, task) ? second : first;
}

void ReplicaDraw::draw_again_for_those_gone(Job& job) {
    const uint64_t now_ms = environment_.now_ms();
    candidates();
    std::vector<TaskNumber> again;
    for (const auto& [volunteer, numbers] : job.queue.drawn()) {
        const bool gone = !places_.contains(volunteer);
        for (const TaskNumber number : numbers)
            if (gone || job.queue.find(number)->drawn_until_ms <= now_ms) again.push_back(number);
    }
    for (const TaskNumber number : again) job.queue.draw_again(number);
}

void ReplicaDraw::draw(Job& job) {
    const uint64_t now_ms = environment_.now_ms();
    if (now_ms - job.draws_looked_after_ms >= look_after_ms && job.queue.window() > 0) {
        job.draws_looked_after_ms = now_ms;
        draw_again_for_those_gone(job);
    }
    if (job.queue.undrawn().empty() || candidates().empty()) return;
    const std::vector<TaskNumber> numbers = job.queue.undrawn();
    for (const TaskNumber number : numbers) {
        const OpenTask& task = *job.queue.find(number);
        if (const LiveComputer* const computer = draw_one(job, task))
            job.queue.draw(number, computer->record.volunteer,
                           now_ms + book_.duration_ms(*computer, task.prepared));
    }
}

uint64_t ReplicaDraw::usually_begun(const Job& job) {
    if (candidates().empty()) return 0;
    const auto [known, added] = usually_begun_.try_emplace(job.record.id);
    if (!added) return known->second;
    std::vector<uint64_t> begun;
    for (const Candidate& candidate : candidates_) begun.push_back(job.queue.begun(candidate.volunteer));
    const auto middle = begun.begin() + static_cast<ptrdiff_t>((begun.size() - 1) / 2);
    std::nth_element(begun.begin(), middle, begun.end());
    return known->second = *middle;
}

bool ReplicaDraw::may_begin(const Job& job, VolunteerId volunteer, uint64_t quota) {
    const uint64_t waiting = job.queue.waiting(volunteer);
    if (waiting >= std::min(quota, most_waiting)) return false;
    return waiting < always_waiting || waiting < always_waiting + usually_begun(job) / begun_for_one_waiting;
}

}  // namespace goblin::lab
