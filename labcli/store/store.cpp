// Reads and writes the lab's records.
#include "labcli/store/store.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>

#include "core/error.hpp"
#include "labcli/store/schema.hpp"

namespace goblin::lab {

namespace {

uint64_t wall_ms() {
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count());
}

template <size_t size>
void read_into(std::array<uint8_t, size>& target, const std::vector<uint8_t>& blob) {
    if (blob.size() != size)
        throw Error(ErrorKind::io,
                    "the lab's database: expected a value of {} bytes, found {}; restore a copy", size,
                    blob.size());
    std::copy(blob.begin(), blob.end(), target.begin());
}

std::vector<uint8_t> joined(const std::vector<Digest>& digests) {
    std::vector<uint8_t> bytes;
    for (const Digest& digest : digests) bytes.insert(bytes.end(), digest.bytes.begin(), digest.bytes.end());
    return bytes;
}

std::vector<Digest> split(const std::vector<uint8_t>& bytes) {
    std::vector<Digest> digests(bytes.size() / 32);
    for (size_t i = 0; i < digests.size(); ++i)
        std::memcpy(digests[i].bytes.data(), bytes.data() + 32 * i, 32);
    return digests;
}

constexpr const char* assignment_columns =
    "id,secret_id,key,job,task,computer,state,duration_ms,digests,compute_us,reason";

Assignment assignment_of(const Statement& row) {
    Assignment assignment;
    assignment.number = row.natural(0);
    read_into(assignment.id, row.blob(1));
    read_into(assignment.key, row.blob(2));
    assignment.job = row.natural(3);
    assignment.task = row.natural(4);
    assignment.computer = row.natural(5);
    assignment.state = static_cast<AssignmentState>(row.integer(6));
    assignment.duration_ms = row.natural(7);
    assignment.digests = split(row.blob(8));
    assignment.compute_us = row.natural(9);
    assignment.reason = row.text(10);
    return assignment;
}

}  // namespace

Store::Store(const std::filesystem::path& path, std::function<void(const std::string&)> fatal,
             Database::Waiting waiting)
    : path_(path),
      read_database_(path, waiting),
      write_database_(path, waiting),
      writer_(write_database_, std::move(fatal)) {
    migrate(read_database_);
}

Store::~Store() {
    end_turn();
}

std::vector<Invitation> Store::invitations() {
    Statement query =
        read_database_.statement("SELECT id,token_hash,uses_left,expires_at,trusted,revoked FROM invitation");
    std::vector<Invitation> all;
    while (query.step()) {
        Invitation& invitation = all.emplace_back();
        invitation.id = query.natural(0);
        read_into(invitation.token_hash.bytes, query.blob(1));
        invitation.uses_left = query.natural(2);
        invitation.expires_at_ms = query.natural(3);
        invitation.trusted = query.integer(4) != 0;
        invitation.revoked = query.integer(5) != 0;
    }
    return all;
}

std::vector<Volunteer> Store::volunteers() {
    Statement query = read_database_.statement(
        "SELECT id,public_key,invitation,trusted,state,agreed,disagreed,failed,credit_flops FROM volunteer");
    std::vector<Volunteer> all;
    while (query.step()) {
        Volunteer& volunteer = all.emplace_back();
        volunteer.id = query.natural(0);
        read_into(volunteer.public_key, query.blob(1));
        volunteer.invitation = query.natural(2);
        volunteer.trusted = query.integer(3) != 0;
        volunteer.state = static_cast<MemberState>(query.integer(4));
        volunteer.agreed = query.natural(5);
        volunteer.disagreed = query.natural(6);
        volunteer.failed = query.natural(7);
        volunteer.credit_flops = query.natural(8);
    }
    return all;
}

std::vector<Computer> Store::computers() {
    Statement query = read_database_.statement(
        "SELECT id,volunteer,mark,name,credential_hash,state,speed_flops FROM computer");
    std::vector<Computer> all;
    while (query.step()) {
        Computer& computer = all.emplace_back();
        computer.id = query.natural(0);
        computer.volunteer = query.natural(1);
        read_into(computer.mark, query.blob(2));
        computer.name = query.text(3);
        read_into(computer.credential_hash.bytes, query.blob(4));
        computer.state = static_cast<MemberState>(query.integer(5));
        computer.speed_flops = query.natural(6);
    }
    return all;
}

std::vector<JobRecord> Store::jobs() {
    Statement query = read_database_.statement(
        "SELECT "
        "id,kind,spec,policy,resolved,replicas,tasks,state,reason,report,created_at,ended_at,rows_checked,"
        "rows_recomputed,delta,disputes,computed_by_lab FROM job");
    std::vector<JobRecord> all;
    while (query.step()) {
        JobRecord& job = all.emplace_back();
        job.id = query.natural(0);
        job.kind = query.text(1);
        job.specification = query.text(2);
        job.choice = {static_cast<Policy>(query.integer(3)), static_cast<Policy>(query.integer(4)),
                      query.natural(5)};
        job.tasks = query.natural(6);
        job.state = static_cast<JobState>(query.integer(7));
        job.reason = query.text(8);
        job.report = query.text(9);
        job.created_at_ms = query.natural(10);
        job.ended_at_ms = query.natural(11);
        job.tally = {query.natural(12), query.natural(13), query.real(14), query.natural(15),
                     query.natural(16)};
    }
    return all;
}

std::vector<TaskNumber> Store::accepted_tasks(JobId job) {
    Statement query = read_database_.statement("SELECT task FROM accepted WHERE job=?1");
    query.bind(job);
    std::vector<TaskNumber> tasks;
    while (query.step()) tasks.push_back(query.natural(0));
    return tasks;
}

std::unordered_map<VolunteerId, uint64_t> Store::agreed_results(JobId job) {
    Statement query = read_database_.statement(
        "SELECT computer.volunteer,count(*) FROM assignment JOIN computer ON computer.id=assignment.computer "
        "WHERE assignment.job=?1 AND assignment.state=?2 GROUP BY computer.volunteer");
    query.bind(job).bind(static_cast<uint64_t>(AssignmentState::agreed));
    std::unordered_map<VolunteerId, uint64_t> results;
    while (query.step()) results.emplace(query.natural(0), query.natural(1));
    return results;
}

std::vector<Assignment> Store::open_assignments(JobId job) {
    static const std::string sql =
        fmt::format("SELECT {} FROM assignment WHERE job=?1 AND state IN ({},{},{},{})", assignment_columns,
                    static_cast<int>(AssignmentState::issued), static_cast<int>(AssignmentState::committed),
                    static_cast<int>(AssignmentState::returned), static_cast<int>(AssignmentState::expired));
    Statement query = read_database_.statement(sql.c_str());
    query.bind(job);
    std::vector<Assignment> all;
    while (query.step()) all.push_back(assignment_of(query));
    return all;
}

AssignmentNumber Store::next_assignment_number() {
    Statement query = read_database_.statement("SELECT coalesce(max(id),0)+1 FROM assignment");
    return query.step() ? query.natural(0) : 1;
}

std::optional<Assignment> Store::assignment(AssignmentNumber number) {
    static const std::string sql = fmt::format("SELECT {} FROM assignment WHERE id=?1", assignment_columns);
    Statement query = read_database_.statement(sql.c_str());
    query.bind(number);
    if (!query.step()) return std::nullopt;
    return assignment_of(query);
}

std::vector<HistoryLine> Store::history(JobId job, uint64_t most) {
    std::vector<HistoryLine> lines;
    {
        Statement query = read_database_.statement(
            "SELECT issued_at,committed_at,ended_at,task,computer,state,compute_us,reason FROM assignment "
            "WHERE job=?1 ORDER BY id DESC LIMIT ?2");
        query.bind(job).bind(most);
        while (query.step()) {
            const auto state = static_cast<AssignmentState>(query.integer(5));
            const std::string who = fmt::format("task {}: computer {}", query.natural(3), query.natural(4));
            lines.push_back({query.natural(0), who + " got it"});
            if (query.natural(1) != 0)
                lines.push_back(
                    {query.natural(1), fmt::format("{} committed a digest after {:.3f} s of computing", who,
                                                   static_cast<double>(query.natural(6)) / 1e6)});
            if (query.natural(2) != 0) {
                const std::string reason = query.text(7);
                lines.push_back({query.natural(2), fmt::format("{} {}{}{}", who, name_of(state),
                                                               reason.empty() ? "" : ": ", reason)});
            }
        }
    }
    Statement query =
        read_database_.statement("SELECT at,text FROM event WHERE job=?1 ORDER BY id DESC LIMIT ?2");
    query.bind(job).bind(most);
    while (query.step()) lines.push_back({query.natural(0), query.text(1)});
    std::stable_sort(lines.begin(), lines.end(),
                     [](const HistoryLine& a, const HistoryLine& b) { return a.at_ms < b.at_ms; });
    if (lines.size() > most) lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(most));
    return lines;
}

std::vector<HistoryLine> Store::disagreements(ComputerId computer, uint64_t most) {
    Statement query = read_database_.statement(
        "SELECT ended_at,job,task,state,reason FROM assignment WHERE computer=?1 AND state IN (?2,?3) ORDER "
        "BY id DESC LIMIT ?4");
    query.bind(computer)
        .bind(static_cast<uint64_t>(AssignmentState::disagreed))
        .bind(static_cast<uint64_t>(AssignmentState::failed))
        .bind(most);
    std::vector<HistoryLine> lines;
    while (query.step())
        lines.push_back(
            {query.natural(0),
             fmt::format("job {}, task {}: {}: {}", query.natural(1), query.natural(2),
                         name_of(static_cast<AssignmentState>(query.integer(3))), query.text(4))});
    return lines;
}

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
            statement.bind(volunteer.credit_flops).bind(wall_ms()).run();
        });
    for (auto& file : turn_.files) writer_.sync_first(std::move(file));
    if (!turn_.changes.empty())
        writer_.change([changes = std::move(turn_.changes)](Database& database) {
            for (const Writer::Change& change : changes) change(database);
        });
    for (auto& done : turn_.done) writer_.after_commit(std::move(done));
    turn_ = {};
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
        statement.bind(uint64_t{invitation.trusted}).bind(uint64_t{invitation.revoked}).bind(wall_ms()).run();
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
            .bind(wall_ms())
            .run();
    });
}

void Store::forget_computer(ComputerId computer) {
    turn_.changes.push_back([computer](Database& database) {
        database.statement("DELETE FROM computer WHERE id=?1").bind(computer).run();
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
        for (const char* sql : {"DELETE FROM accepted WHERE job=?1", "DELETE FROM assignment WHERE job=?1",
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
