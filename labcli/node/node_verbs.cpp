// Shows, approves, bans and forgets contributors.
#include "labcli/node/node_verbs.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/work/base64url.hpp"
#include "core/work/plain_text.hpp"

namespace goblin::lab {

namespace {

using nlohmann::json;

json json_of(LabNode::Parts& parts, const LiveComputer& computer) {
    const Volunteer& volunteer = parts.contributors.volunteer(computer.record.volunteer);
    const std::string why_not = parts.contributors.why_not(computer);
    json seen_s = nullptr;
    if (computer.last_seen_ms != 0)
        seen_s = static_cast<double>(parts.environment.now_ms() - computer.last_seen_ms) / 1000;
    return {
        {"id", computer.record.id},
        {"name", computer.record.name},
        {"volunteer", volunteer.id},
        {"membership", std::string(name_of(volunteer.state == MemberState::approved ? computer.record.state
                                                                                    : volunteer.state))},
        {"trusted", volunteer.trusted},
        {"state", why_not.empty() ? computer.state_text(parts.environment.now_ms()) : why_not},
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
        throw Error(
            ErrorKind::usage,
            "expected the number of a contributor's computer, found {}; `goblin-lab node list` shows them",
            id);
    return *computer;
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
        parts.contributors.set_state(parts.contributors.volunteer(computer.record.volunteer),
                                     MemberState::approved);
        parts.contributors.set_state(computer, MemberState::approved);
        return json_of(parts, computer);
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
