// Shows, approves, bans and forgets contributors.
#include "labcli/node/node_verbs.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/work/base64url.hpp"
#include "core/work/plain_text.hpp"

namespace goblin::lab {

namespace {

using nlohmann::json;

// For people at the lab.
std::string state_of(MemberState membership, const LiveComputer& computer, uint64_t now_ms) {
    switch (membership) {
        case MemberState::pending:
            return fmt::format("waiting for: goblin-lab node approve {}", computer.record.id);
        case MemberState::banned:
            return "gets no tasks";
        case MemberState::approved:
            break;
    }
    return computer.state_text(now_ms);
}

json json_of(LabNode::Parts& parts, const LiveComputer& computer) {
    const Volunteer& volunteer = parts.contributors.volunteer(computer.record.volunteer);
    const MemberState membership =
        volunteer.state == MemberState::approved ? computer.record.state : volunteer.state;
    json seen_s = nullptr;
    if (computer.last_seen_ms != 0)
        seen_s = static_cast<double>(parts.environment.now_ms() - computer.last_seen_ms) / 1000;
    return {{"id", computer.record.id},
            {"name", computer.record.name},
            {"volunteer", volunteer.id},
            {"membership", std::string(name_of(membership))},
            {"trusted", volunteer.trusted},
            {"state", state_of(membership, computer, parts.environment.now_ms())},
            {"seen_s", seen_s},
            {"open_assignments", computer.open.size()},
            {"speed_flops", computer.record.speed_flops},
            {"agreed", volunteer.agreed},
            {"disagreed", volunteer.disagreed},
            {"failed", volunteer.failed},
            {"credit_flops", volunteer.credit_flops}};
}

LiveComputer& expect_computer(LabNode::Parts& parts, ComputerId id) {
    LiveComputer* const computer = parts.contributors.computer(id);
    if (computer == nullptr)
        throw Error(ErrorKind::usage,
                    "expected a computer of a contributor, found none with the number {}; `goblin-lab node "
                    "list` shows them",
                    id);
    return *computer;
}

// The volunteer with all computers; whether any of them was banned.
bool approve_all(LabNode::Parts& parts, VolunteerId id) {
    Volunteer& volunteer = parts.contributors.volunteer(id);
    bool banned = volunteer.state == MemberState::banned;
    parts.contributors.set_state(volunteer, MemberState::approved);
    for (auto& [other, computer] : parts.contributors.computers()) {
        if (computer.record.volunteer != id) continue;
        banned |= computer.record.state == MemberState::banned;
        parts.contributors.set_state(computer, MemberState::approved);
    }
    return banned;
}

}  // namespace

json node_list(LabNode& node, const json&) {
    return node.administer([](LabNode::Parts parts) {
        json all = json::array();
        for (const auto& [id, computer] : parts.contributors.computers())
            all.push_back(json_of(parts, computer));
        return all;
    });
}

json node_show(LabNode& node, const json& arguments) {
    const auto id = arguments.at("id").get<ComputerId>();
    return node.administer([id](LabNode::Parts parts) {
        const LiveComputer& computer = expect_computer(parts, id);
        json shown = json_of(parts, computer);
        shown["address"] = computer.peer.address;
        shown["volunteer_key"] =
            to_base64url(parts.contributors.volunteer(computer.record.volunteer).public_key);
        shown["quota"] = computer.quota;
        shown["joined_at_ms"] = computer.record.created_at_ms;
        shown["volunteer_since_ms"] = parts.contributors.volunteer(computer.record.volunteer).created_at_ms;
        json devices = json::array();
        for (const DeviceOffer& device : computer.devices)
            devices.push_back({{"kind", printable_name(device.kind)},
                               {"name", printable_name(device.name)},
                               {"claimed_flops", device.speed_flops},
                               {"takes_floats", device.takes_floats},
                               {"memory_bytes", device.memory_bytes}});
        shown["devices"] = devices;
        json disputes = json::array();
        for (const HistoryLine& line : parts.store.disagreements(id, 100))
            disputes.push_back({{"at_ms", line.at_ms}, {"text", line.text}});
        shown["disagreements"] = disputes;
        return shown;
    });
}

json node_approve(LabNode& node, const json& arguments) {
    const auto id = arguments.at("id").get<ComputerId>();
    return node.administer([id](LabNode::Parts parts) {
        LiveComputer& computer = expect_computer(parts, id);
        const json before = json_of(parts, computer);
        const bool lifts_ban = approve_all(parts, computer.record.volunteer);
        json approved = json_of(parts, computer);
        approved["was"] = before["membership"];
        if (lifts_ban)
            approved["next"] = "its workers ended when they were banned; the volunteer must start them again";
        return approved;
    });
}

json node_ban(LabNode& node, const json& arguments) {
    const auto id = arguments.at("id").get<ComputerId>();
    const std::string scope = arguments.value("scope", "volunteer");
    if (scope != "volunteer" && scope != "computer")
        throw Error(ErrorKind::usage, "expected the scope volunteer or computer, found '{}'", scope);
    return node.administer([id, scope](LabNode::Parts parts) {
        LiveComputer& computer = expect_computer(parts, id);
        if (scope == "volunteer")
            parts.contributors.set_state(parts.contributors.volunteer(computer.record.volunteer),
                                         MemberState::banned);
        else
            parts.contributors.set_state(computer, MemberState::banned);
        for (auto& [other, live] : parts.contributors.computers())
            if (other == id || (scope == "volunteer" && live.record.volunteer == computer.record.volunteer))
                parts.desk.drop_assignments(live, "banned");
        return json_of(parts, computer);
    });
}

json node_forget(LabNode& node, const json& arguments) {
    const auto id = arguments.at("id").get<ComputerId>();
    return node.administer([id](LabNode::Parts parts) {
        LiveComputer& computer = expect_computer(parts, id);
        parts.desk.drop_assignments(computer, "forgotten");
        if (computer.waiting) std::exchange(computer.waiting, std::nullopt)->done(ExchangeReply{});
        json forgotten = json_of(parts, computer);
        parts.contributors.forget(id);
        return forgotten;
    });
}

}  // namespace goblin::lab
