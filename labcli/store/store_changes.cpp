// Keeps what changes: the Journal's side of the store.
#include <algorithm>
#include <chrono>
#include <utility>

#include "labcli/store/store.hpp"

namespace goblin::lab {

namespace {

uint64_t wall_ms() {
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count());
}

std::vector<uint8_t> joined(const std::vector<Digest>& digests) {
    std::vector<uint8_t> bytes;
    for (const Digest& digest : digests) bytes.insert(bytes.end(), digest.bytes.begin(), digest.bytes.end());
    return bytes;
}

}  // namespace

void Store::end_turn() {
    for (const auto& [id, volunteer] : turn_.volunteers)
        turn_.changes.push_back([volunteer = volunteer](Database& database) {
            Statement statement = database.statement(
                "INSERT INTO "
                "volunteer(id,public_key,invitation,trusted,state,agreed,disagreed,failed,credit_flops,"
                "created_at) "
                "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10) ON CONFLICT(id) DO UPDATE SET "
                "invitation=?3,trusted=?4,state=?5,agreed=?6,"
                "disagreed=?7,failed=?8,credit_flops=?9");
            statement.bind(volunteer.id)
                .bind(volunteer.public_key)
                .bind(volunteer.invitation)
                .bind(uint64_t{volunteer.trusted});
            statement.bind(static_cast<uint64_t>(volunteer.state))
                .bind(volunteer.agreed)
                .bind(volunteer.disagreed)
                .bind(volunteer.failed);
            statement.bind(volunteer.credit_flops).bind(volunteer.created_at_ms).run();
        });
    for (auto& file : turn_.files) writer_.sync_first(std::move(file));
    if (!turn_.changes.empty())
        writer_.change([changes = std::move(turn_.changes)](Database& database) {
            for (const Writer::Change& change : changes) change(database);
        });
    for (auto& done : turn_.done) writer_.after_commit(std::move(done));
    if (!turn_.ended.empty())
        writer_.after_commit([this, ended = std::move(turn_.ended)] {
            const std::lock_guard lock(ending_mutex_);
            for (const AssignmentNumber number : ended) ending_.erase(number);
        });
    turn_ = {};
}

bool Store::drop_turn() {
    const Turn dropped = std::exchange(turn_, {});
    const std::lock_guard lock(ending_mutex_);
    for (const AssignmentNumber number : dropped.ended) ending_.erase(number);
    return !dropped.changes.empty() || !dropped.volunteers.empty() || !dropped.files.empty();
}

void Store::invitation(const Invitation& invitation) {
    turn_.changes.push_back([invitation](Database& database) {
        Statement statement = database.statement(
            "INSERT INTO invitation(id,token_hash,uses_left,expires_at,trusted,revoked,created_at) "
            "VALUES(?1,?2,?3,?4,?5,?6,?7) "
            "ON CONFLICT(id) DO UPDATE SET uses_left=?3,revoked=?6");
        statement.bind(invitation.id)
            .bind(invitation.token_hash.bytes)
            .bind(invitation.uses_left)
            .bind(invitation.expires_at_ms);
        statement.bind(uint64_t{invitation.trusted})
            .bind(uint64_t{invitation.revoked})
            .bind(invitation.created_at_ms)
            .run();
    });
}

void Store::volunteer(const Volunteer& volunteer) {
    turn_.volunteers[volunteer.id] = volunteer;
}

void Store::computer(const Computer& computer) {
    // A new computer's volunteer is in the same turn; the computer refers to it.
    turn_.changes.push_back([computer](Database& database) {
        Statement statement = database.statement(
            "INSERT INTO computer(id,volunteer,mark,name,credential_hash,state,speed_flops,created_at) "
            "VALUES(?1,?2,?3,?4,?5,?6,?7,?8) "
            "ON CONFLICT(id) DO UPDATE SET name=?4,credential_hash=?5,state=?6,speed_flops=?7");
        statement.bind(computer.id)
            .bind(computer.volunteer)
            .bind(computer.mark)
            .bind(std::string_view(computer.name));
        statement.bind(computer.credential_hash.bytes)
            .bind(static_cast<uint64_t>(computer.state))
            .bind(computer.speed_flops)
            .bind(computer.created_at_ms)
            .run();
    });
}

void Store::forget_computer(ComputerId computer) {
    turn_.changes.push_back([computer](Database& database) {
        for (const char* sql :
             {"UPDATE last_number SET computer=max(computer,?1)", "DELETE FROM computer WHERE id=?1"})
            database.statement(sql).bind(computer).run();
    });
}

void Store::job(const JobRecord& job) {
    turn_.changes.push_back([job](Database& database) {
        Statement statement = database.statement(
            "INSERT INTO "
            "job(id,kind,spec,policy,resolved,replicas,tasks,state,reason,report,created_at,ended_at,"
            "rows_checked,rows_recomputed,delta,disputes,computed_by_lab) "
            "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17) ON CONFLICT(id) DO UPDATE "
            "SET "
            "resolved=?5,state=?8,reason=?9,report=?10,ended_at=?12,rows_checked=?13,rows_recomputed=?14,"
            "delta=?15,"
            "disputes=?16,computed_by_lab=?17");
        statement.bind(job.id).bind(std::string_view(job.kind)).bind(std::string_view(job.specification));
        statement.bind(static_cast<uint64_t>(job.choice.policy))
            .bind(static_cast<uint64_t>(job.choice.resolved));
        statement.bind(job.choice.replicas).bind(job.tasks).bind(static_cast<uint64_t>(job.state));
        statement.bind(std::string_view(job.reason)).bind(std::string_view(job.report));
        statement.bind(job.created_at_ms).bind(job.ended_at_ms);
        statement.bind(job.tally.rows_checked).bind(job.tally.rows_recomputed).bind(job.tally.delta);
        statement.bind(job.tally.disputes).bind(job.tally.computed_by_lab).run();
    });
}

void Store::delete_job(JobId job) {
    turn_.changes.push_back([job](Database& database) {
        for (const char* sql : {"UPDATE last_number SET job=max(job,?1),"
                                "assignment=max(assignment,(SELECT coalesce(max(id),0) FROM assignment))",
                                "DELETE FROM accepted WHERE job=?1", "DELETE FROM assignment WHERE job=?1",
                                "DELETE FROM event WHERE job=?1", "DELETE FROM job WHERE id=?1"})
            database.statement(sql).bind(job).run();
    });
}

void Store::assignment_issued(const Assignment& assignment) {
    struct Row {
        AssignmentNumber number;
        AssignmentId id;
        SecretKey key;
        uint64_t job, task, computer, duration_ms, at_ms;
    };
    turn_.changes.push_back(
        [row = Row{assignment.number, assignment.id, assignment.key, assignment.job, assignment.task,
                   assignment.computer, assignment.duration_ms, wall_ms()}](Database& database) {
            Statement statement = database.statement(
                "INSERT INTO assignment(id,secret_id,key,job,task,computer,state,duration_ms,issued_at) "
                "VALUES(?1,?2,?3,?4,?5,?6,0,?7,?8)");
            statement.bind(row.number)
                .bind(row.id)
                .bind(row.key)
                .bind(row.job)
                .bind(row.task)
                .bind(row.computer)
                .bind(row.duration_ms);
            statement.bind(row.at_ms).run();
        });
}

void Store::assignment_changed(const Assignment& assignment) {
    const bool committed = assignment.state == AssignmentState::committed;
    if (is_over(assignment.state)) {
        turn_.ended.push_back(assignment.number);
        const std::lock_guard lock(ending_mutex_);
        ending_.insert_or_assign(assignment.number, assignment);
    }
    turn_.changes.push_back([number = assignment.number, state = assignment.state,
                             digests = committed ? joined(assignment.digests) : std::vector<uint8_t>(),
                             compute_us = assignment.compute_us, reason = assignment.reason,
                             at_ms = wall_ms()](Database& database) {
        if (state == AssignmentState::committed) {
            Statement statement = database.statement(
                "UPDATE assignment SET state=?2,digests=?3,compute_us=?4,committed_at=?5 WHERE id=?1");
            statement.bind(number)
                .bind(static_cast<uint64_t>(state))
                .bind(digests)
                .bind(compute_us)
                .bind(at_ms)
                .run();
        } else {
            Statement statement =
                database.statement("UPDATE assignment SET state=?2,reason=?3,ended_at=?4 WHERE id=?1");
            statement.bind(number)
                .bind(static_cast<uint64_t>(state))
                .bind(std::string_view(reason))
                .bind(at_ms)
                .run();
        }
    });
}

void Store::task_accepted(JobId job, TaskNumber task, std::shared_ptr<Syncable> merged) {
    if (std::find(turn_.files.begin(), turn_.files.end(), merged) == turn_.files.end())
        turn_.files.push_back(std::move(merged));
    turn_.changes.push_back([job, task](Database& database) {
        database.statement("INSERT INTO accepted(job,task) VALUES(?1,?2)").bind(job).bind(task).run();
    });
}

void Store::event(JobId job, std::string text) {
    turn_.changes.push_back([job, text = std::move(text), at_ms = wall_ms()](Database& database) {
        database.statement("INSERT INTO event(job,at,text) VALUES(?1,?2,?3)")
            .bind(job)
            .bind(at_ms)
            .bind(std::string_view(text))
            .run();
    });
}

void Store::after_commit(std::function<void()> done) {
    turn_.done.push_back(std::move(done));
}

}  // namespace goblin::lab
