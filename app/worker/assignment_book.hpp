// Assignment book: one lab's open assignments on this computer, the stage of each, and what the lab must
// still be told.
//
//   waiting → fetching → ready → computing → computed → (decided: gone)
//        any of them → ended (failed or handed back) → (acknowledged: gone)
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "app/worker/blob_cache.hpp"
#include "app/worker/journal.hpp"
#include "core/work/exchange.hpp"

namespace goblin::worker {

enum class Stage {
    waiting,    // for room in the cache
    fetching,   // inputs are on their way
    ready,      // to be computed
    computing,  // handed to a device
    computed,   // outputs are kept until the lab has decided
    ended,      // not computed; the lab is to be told why
};

struct Assignment {
    AssignmentId id{};
    SecretKey key{};
    uint64_t duration_ms = 0;
    Task task;
    std::vector<TensorSpec> output_specs;
    std::vector<BlobNeed> needs;  // inputs that travel as blobs
    uint64_t flops = 0;
    // What it takes of memory at most while it is in hand: its description, and what travels with exchanges.
    uint64_t memory_bytes = 0;
    uint64_t outputs_disk_bytes = 0;  // what its outputs will take of the disk at most

    uint64_t arrival = 0;  // counts arrivals
    Stage stage = Stage::waiting;
    bool pinned = false;          // its needs are pinned in the cache
    uint64_t occupied_bytes = 0;  // of the cache's disk, by its outputs or for them
    std::set<Digest> missing;     // while fetching
    uint64_t deaths = 0;
    Computed computed;
    std::set<Digest> uploaded;  // outputs that have arrived at the lab
    uint64_t spoils = 0;        // times that the cache's file of an input was damaged
    bool doubted = false;  // outputs from before a restart: compared with their digests before they are sent
    bool send_asked = false;
    Ended ended;

    // What the lab acknowledged, and what is on the way to it.
    bool commitment_taken = false;
    bool data_taken = false;
    bool in_flight = false;

    bool outputs_ride_inline() const { return !computed.in_files; }
    // The lab has the numbers.
    bool delivered() const;
};

// Checks the grant's task as check_task() does; throws ErrorKind::input.
Assignment assignment_of(Grant grant);

// One thread uses it.
class AssignmentBook {
  public:
    // The id must be new.
    Assignment& add(Assignment assignment);
    Assignment* find(const AssignmentId& id);
    void erase(const AssignmentId& id);

    size_t size() const { return assignments_.size(); }
    size_t count(Stage stage) const;
    // By arrival.
    std::vector<Assignment*> in_stage(Stage stage);
    std::vector<const Assignment*> in_stage(Stage stage) const;
    std::vector<const Assignment*> all() const;
    std::vector<AssignmentId> holding() const;
    // Operations of what isn't computed yet, and how many tasks those are.
    uint64_t flops_ahead() const;
    size_t tasks_ahead() const;

    // Some results are committed to, and the lab may still ask for their numbers.
    bool owes_numbers() const;
    bool has_something_to_say() const;
    // What the lab must be told, oldest first, within the exchange's limits; marked as on the way.
    std::vector<Result> take_results();
    // The exchange that carried them got no answer that counts.
    void untold(const std::vector<Result>& results);
    // The lab's word about a result that it was told. True when the assignment is at its end and may be
    // erased.
    bool acknowledge(const Receipt& receipt, ResultKind told);

  private:
    std::map<AssignmentId, Assignment> assignments_;
    uint64_t arrivals_ = 0;
};

}  // namespace goblin::worker
