// Opens the database and reads the lab's records.
#include "labcli/store/store.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "labcli/store/schema.hpp"

namespace goblin::lab {

namespace {

template <size_t size>
void read_into(std::array<uint8_t, size>& target, const std::vector<uint8_t>& blob) {
    if (blob.size() != size)
        throw Error(ErrorKind::io,
                    "the lab's database: expected a value of {} bytes, found {}; restore a copy", size,
                    blob.size());
    std::copy(blob.begin(), blob.end(), target.begin());
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

// `read` fills one record from the row at hand.
template <typename Record, typename Read>
std::vector<Record> all_of(Statement query, Read read) {
    std::vector<Record> all;
    while (query.step()) read(query, all.emplace_back());
    return all;
}

}  // namespace

Store::Store(const std::filesystem::path& path, std::function<void(const std::string&)> fatal,
             Database::Waiting waiting)
    : read_database_(path, waiting),
      write_database_(path, waiting),
      writer_(write_database_, std::move(fatal)) {
    migrate(read_database_);
}

Store::~Store() {
    end_turn();
}

std::vector<Invitation> Store::invitations() {
    return all_of<Invitation>(
        read_database_.statement(
            "SELECT id,token_hash,uses_left,expires_at,trusted,revoked,created_at FROM invitation"),
        [](const Statement& row, Invitation& invitation) {
            invitation.id = row.natural(0);
            read_into(invitation.token_hash.bytes, row.blob(1));
            invitation.uses_left = row.natural(2);
            invitation.expires_at_ms = row.natural(3);
            invitation.trusted = row.integer(4) != 0;
            invitation.revoked = row.integer(5) != 0;
            invitation.created_at_ms = row.natural(6);
        });
}

std::vector<Volunteer> Store::volunteers() {
    return all_of<Volunteer>(
        read_database_.statement(
            "SELECT id,public_key,invitation,trusted,state,agreed,disagreed,failed,credit_flops,created_at "
            "FROM "
            "volunteer"),
        [](const Statement& row, Volunteer& volunteer) {
            volunteer.id = row.natural(0);
            read_into(volunteer.public_key, row.blob(1));
            volunteer.invitation = row.natural(2);
            volunteer.trusted = row.integer(3) != 0;
            volunteer.state = static_cast<MemberState>(row.integer(4));
            volunteer.agreed = row.natural(5);
            volunteer.disagreed = row.natural(6);
            volunteer.failed = row.natural(7);
            volunteer.credit_flops = row.natural(8);
            volunteer.created_at_ms = row.natural(9);
        });
}

std::vector<Computer> Store::computers() {
    return all_of<Computer>(
        read_database_.statement(
            "SELECT id,volunteer,mark,name,credential_hash,state,speed_flops,created_at FROM computer"),
        [](const Statement& row, Computer& computer) {
            computer.id = row.natural(0);
            computer.volunteer = row.natural(1);
            read_into(computer.mark, row.blob(2));
            computer.name = row.text(3);
            read_into(computer.credential_hash.bytes, row.blob(4));
            computer.state = static_cast<MemberState>(row.integer(5));
            computer.speed_flops = row.natural(6);
            computer.created_at_ms = row.natural(7);
        });
}

std::vector<JobRecord> Store::jobs() {
    return all_of<JobRecord>(
        read_database_.statement("SELECT "
                                 "id,kind,spec,policy,resolved,replicas,tasks,state,reason,report,created_at,"
                                 "ended_at,rows_checked,"
                                 "rows_recomputed,delta,disputes,computed_by_lab FROM job"),
        [](const Statement& row, JobRecord& job) {
            job.id = row.natural(0);
            job.kind = row.text(1);
            job.specification = row.text(2);
            job.choice = {static_cast<Policy>(row.integer(3)), static_cast<Policy>(row.integer(4)),
                          row.natural(5)};
            job.tasks = row.natural(6);
            job.state = static_cast<JobState>(row.integer(7));
            job.reason = row.text(8);
            job.report = row.text(9);
            job.created_at_ms = row.natural(10);
            job.ended_at_ms = row.natural(11);
            job.tally = {row.natural(12), row.natural(13), row.real(14), row.natural(15), row.natural(16)};
        });
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

LastNumbers Store::last_numbers() {
    // max() of two arguments is NULL when one is.
    Statement query = read_database_.statement(
        "SELECT max(computer,(SELECT coalesce(max(id),0) FROM computer)),"
        "max(job,(SELECT coalesce(max(id),0) FROM job)),"
        "max(assignment,(SELECT coalesce(max(id),0) FROM assignment)) FROM last_number");
    if (!query.step()) return {};
    return {query.natural(0), query.natural(1), query.natural(2)};
}

std::optional<Assignment> Store::assignment(AssignmentNumber number) {
    {
        const std::lock_guard lock(ending_mutex_);
        if (const auto found = ending_.find(number); found != ending_.end()) return found->second;
    }
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

// Only the assignments that the index assignment_blamed has: its condition must stand here word for word.
const std::string& Store::disagreements_query() {
    static const std::string sql = fmt::format(
        "SELECT ended_at,job,task,state,reason FROM assignment WHERE computer=?1 AND state IN ({},{}) "
        "ORDER BY id DESC LIMIT ?2",
        static_cast<int>(AssignmentState::disagreed), static_cast<int>(AssignmentState::failed));
    return sql;
}

std::vector<HistoryLine> Store::disagreements(ComputerId computer, uint64_t most) {
    Statement query = read_database_.statement(disagreements_query().c_str());
    query.bind(computer).bind(most);
    std::vector<HistoryLine> lines;
    while (query.step())
        lines.push_back(
            {query.natural(0),
             fmt::format("job {}, task {}: {}: {}", query.natural(1), query.natural(2),
                         name_of(static_cast<AssignmentState>(query.integer(3))), query.text(4))});
    return lines;
}

}  // namespace goblin::lab
