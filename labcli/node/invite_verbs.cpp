// Makes, lists and revokes invitations.
#include "labcli/node/invite_verbs.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/work/identity.hpp"
#include "core/work/link.hpp"

namespace goblin::lab {

namespace {

using nlohmann::json;

constexpr uint64_t most_uses = 1'000'000;

json json_of(const Invitation& invitation) {
    return {{"id", invitation.id},
            {"uses_left", invitation.uses_left},
            {"created_at_ms", invitation.created_at_ms},
            {"expires_at_ms", invitation.expires_at_ms},
            {"trusted", invitation.trusted},
            {"revoked", invitation.revoked}};
}

}  // namespace

json invite_create(LabNode& node, const json& arguments) {
    const auto uses = arguments.value("uses", uint64_t{1});
    const auto expires_ms = arguments.value("expires_ms", uint64_t{7 * 86'400'000});
    if (uses < 1 || uses > most_uses)
        throw Error(ErrorKind::usage, "expected 1 to {} uses, found {}", most_uses, uses);
    const bool trusted = arguments.value("trusted", false);
    const std::string host = arguments.at("host").get<std::string>();
    return node.administer([=](LabNode::Parts parts) {
        const HostPort place = HostPort::parse(host, parts.port);
        const auto token = random_bytes<FixedBytes<16>>();
        const Invitation invitation =
            parts.contributors.invite(token, uses, parts.environment.wall_ms(), expires_ms, trusted);
        json answer = json_of(invitation);
        answer["link"] =
            InvitationLink{place.host, place.port, parts.certificate.key, {token.begin(), token.end()}}
                .text();
        return answer;
    });
}

json invite_list(LabNode& node, const json&) {
    return node.administer([](LabNode::Parts parts) {
        json all = json::array();
        for (const auto& [id, invitation] : parts.contributors.invitations())
            all.push_back(json_of(invitation));
        return all;
    });
}

json invite_revoke(LabNode& node, const json& arguments) {
    const auto id = arguments.at("id").get<InvitationId>();
    return node.administer([id](LabNode::Parts parts) {
        if (!parts.contributors.revoke(id))
            throw Error(ErrorKind::usage,
                        "expected an invitation of this lab, found none with the number {}; `goblin-lab "
                        "invite list` shows them",
                        id);
        return json_of(parts.contributors.invitations().at(id));
    });
}

}  // namespace goblin::lab
