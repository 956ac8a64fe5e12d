// Invites, enrols and looks up contributors.
#include "labcli/schedule/contributors.hpp"

#include <algorithm>
#include <cassert>

#include "core/error.hpp"
#include "core/work/identity.hpp"
#include "core/work/plain_text.hpp"

namespace goblin::lab {

namespace {

constexpr uint64_t nonce_valid_ms = 600'000;
constexpr size_t nonce_bytes = 8 + 32;  // time ‖ HMAC of it
constexpr size_t most_networks_counted = 4096;

Refusal refuse(int status, std::string code, std::string message, uint64_t retry_after_ms = 0) {
    return {status, {std::move(code), std::move(message)}, retry_after_ms};
}

std::array<uint8_t, 8> bytes_of(uint64_t value) {
    std::array<uint8_t, 8> bytes{};
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(value >> (8 * i));
    return bytes;
}

}  // namespace

void Contributors::load(std::vector<Invitation> invitations, std::vector<Volunteer> volunteers,
                        std::vector<Computer> computers, ComputerId last_computer) {
    last_computer_ = std::max(last_computer_, last_computer);
    for (Invitation& invitation : invitations) invitations_.emplace(invitation.id, invitation);
    for (Volunteer& volunteer : volunteers) volunteers_.emplace(volunteer.id, volunteer);
    for (Computer& computer : computers) {
        by_credential_hash_.emplace(computer.credential_hash, computer.id);
        last_computer_ = std::max(last_computer_, computer.id);
        LiveComputer live;
        live.record = computer;
        computers_.emplace(computer.id, std::move(live));
    }
}

Invitation Contributors::invite(std::span<const uint8_t> token, uint64_t uses, uint64_t wall_ms,
                                uint64_t valid_ms, bool trusted) {
    Invitation invitation;
    invitation.id = invitations_.empty() ? 1 : invitations_.rbegin()->first + 1;
    invitation.token_hash = sha256(token);
    invitation.uses_left = uses;
    invitation.created_at_ms = wall_ms;
    invitation.expires_at_ms = wall_ms + valid_ms;
    invitation.trusted = trusted;
    invitations_.emplace(invitation.id, invitation);
    journal_.invitation(invitation);
    return invitation;
}

bool Contributors::revoke(InvitationId id) {
    const auto found = invitations_.find(id);
    if (found == invitations_.end()) return false;
    found->second.revoked = true;
    journal_.invitation(found->second);
    return true;
}

Bytes Contributors::fresh_nonce(const SecretKey& secret, uint64_t now_ms) {
    const auto time = bytes_of(now_ms);
    Bytes nonce(time.begin(), time.end());
    const Digest proof = hmac_sha256(secret, time);
    nonce.insert(nonce.end(), proof.bytes.begin(), proof.bytes.end());
    return nonce;
}

bool Contributors::nonce_is_fresh(const Bytes& nonce, uint64_t now_ms) const {
    if (nonce.size() != nonce_bytes) return false;
    uint64_t made_ms = 0;
    for (size_t i = 0; i < 8; ++i) made_ms |= uint64_t{nonce[i]} << (8 * i);
    if (made_ms > now_ms || now_ms - made_ms > nonce_valid_ms) return false;
    const std::span<const uint8_t> bytes(nonce);
    return equal_secrets(hmac_sha256(rules_.nonce_secret, bytes.first(8)).bytes, bytes.subspan(8));
}

bool Contributors::too_many_attempts(const Peer& peer, uint64_t now_ms) {
    if (wrong_tokens_.size() >= most_networks_counted)
        std::erase_if(wrong_tokens_,
                      [&](const auto& entry) { return now_ms - entry.second.window_start_ms > 60'000; });
    if (wrong_tokens_.size() >= most_networks_counted) return true;
    Attempts& attempts = wrong_tokens_[network_of(peer)];
    if (now_ms - attempts.window_start_ms > 60'000) attempts = {now_ms, 0};
    return ++attempts.count > rules_.attempts_per_minute;
}

Invitation* Contributors::invitation_of(std::span<const uint8_t> token) {
    const Digest hash = sha256(token);
    const auto found = std::find_if(invitations_.begin(), invitations_.end(),
                                    [&](const auto& entry) { return entry.second.token_hash == hash; });
    return found == invitations_.end() || found->second.revoked ? nullptr : &found->second;
}

std::optional<Refusal> Contributors::why_refused(const EnrolRequest& request, const Invitation* invitation,
                                                 const Peer& peer, uint64_t now_ms, uint64_t wall_ms) {
    if (invitation == nullptr) {
        if (too_many_attempts(peer, now_ms))
            return refuse(429, "rate", "too many wrong invitations from this network; try again in a minute",
                          60'000);
        return refuse(403, "token",
                      "expected an invitation of this lab, found one it doesn't know or has revoked; ask the "
                      "lab for a new link");
    }
    if (invitation->expires_at_ms <= wall_ms)
        return refuse(403, "token",
                      "expected a valid invitation, found one that has expired; ask the lab for a new link");
    if (!nonce_is_fresh(request.nonce, now_ms))
        return refuse(403, "nonce", "expected a fresh nonce of this lab node, found an old one; try again");
    const auto statement = enrolment_statement(rules_.lab_key, request.token, request.nonce);
    if (!verify_signature(request.volunteer_key, statement, request.signature))
        return refuse(403, "signature",
                      "expected the enrolment to be signed by the volunteer's key, found another signature");
    return std::nullopt;
}

Volunteer* Contributors::volunteer_with(const FixedBytes<32>& key) {
    const auto found = std::find_if(volunteers_.begin(), volunteers_.end(),
                                    [&](const auto& entry) { return entry.second.public_key == key; });
    return found == volunteers_.end() ? nullptr : &found->second;
}

LiveComputer* Contributors::computer_with(const FixedBytes<16>& mark, VolunteerId volunteer) {
    const auto found = std::find_if(computers_.begin(), computers_.end(), [&](const auto& entry) {
        return entry.second.record.volunteer == volunteer && entry.second.record.mark == mark;
    });
    return found == computers_.end() ? nullptr : &found->second;
}

Volunteer& Contributors::add_volunteer(const FixedBytes<32>& key, uint64_t wall_ms) {
    const VolunteerId id = volunteers_.empty() ? 1 : volunteers_.rbegin()->first + 1;
    Volunteer& volunteer = volunteers_[id];
    volunteer.id = id;
    volunteer.public_key = key;
    volunteer.created_at_ms = wall_ms;
    volunteer.state = rules_.approve_by_hand ? MemberState::pending : MemberState::approved;
    return volunteer;
}

LiveComputer& Contributors::add_computer(const FixedBytes<16>& mark, VolunteerId volunteer,
                                         uint64_t wall_ms) {
    const ComputerId id = ++last_computer_;
    LiveComputer& computer = computers_[id];
    computer.record.id = id;
    computer.record.volunteer = volunteer;
    computer.record.mark = mark;
    computer.record.created_at_ms = wall_ms;
    return computer;
}

Answer<EnrolReply> Contributors::enrol(const Peer& peer, const EnrolRequest& request, uint64_t now_ms,
                                       uint64_t wall_ms) {
    Invitation* const invitation = invitation_of(request.token);
    if (auto refusal = why_refused(request, invitation, peer, now_ms, wall_ms)) return *std::move(refusal);
    Volunteer* const known = volunteer_with(request.volunteer_key);
    if (known != nullptr && known->state == MemberState::banned)
        return refuse(403, "banned", "this lab has banned this volunteer; ask the lab why");
    // An interrupted enrolment may be repeated: the same volunteer's same computer doesn't use the invitation
    // up again.
    LiveComputer* const before = known != nullptr ? computer_with(request.computer, known->id) : nullptr;
    const bool repeated = before != nullptr && known->invitation == invitation->id;
    if (!repeated) {
        if (invitation->uses_left == 0)
            return refuse(
                403, "token",
                "expected an unused invitation, found one that has been used up; ask the lab for a new link");
        --invitation->uses_left;
        journal_.invitation(*invitation);
    }
    Volunteer& volunteer = known != nullptr ? *known : add_volunteer(request.volunteer_key, wall_ms);
    volunteer.invitation = invitation->id;
    volunteer.trusted = volunteer.trusted || invitation->trusted;
    journal_.volunteer(volunteer);
    LiveComputer& computer =
        before != nullptr ? *before : add_computer(request.computer, volunteer.id, wall_ms);
    computer.record.name = printable_name(request.computer_name);
    return EnrolReply{give_credential(computer), volunteer.state == MemberState::approved};
}

Credential Contributors::give_credential(LiveComputer& computer) {
    const auto credential = random_bytes<Credential>();
    by_credential_hash_.erase(computer.record.credential_hash);
    computer.record.credential_hash = sha256(credential);
    by_credential_hash_.emplace(computer.record.credential_hash, computer.record.id);
    computer.earlier_sessions.clear();
    computer.session = {};
    journal_.computer(computer.record);
    return credential;
}

LiveComputer* Contributors::by_credential(const Credential& credential) {
    const auto found = by_credential_hash_.find(sha256(credential));
    return found == by_credential_hash_.end() ? nullptr : computer(found->second);
}

LiveComputer* Contributors::computer(ComputerId id) {
    const auto found = computers_.find(id);
    return found == computers_.end() ? nullptr : &found->second;
}

void Contributors::set_state(LiveComputer& computer, MemberState state) {
    computer.record.state = state;
    journal_.computer(computer.record);
}

void Contributors::set_state(Volunteer& volunteer, MemberState state) {
    volunteer.state = state;
    journal_.volunteer(volunteer);
}

void Contributors::forget(ComputerId id) {
    const auto found = computers_.find(id);
    assert(found != computers_.end());
    by_credential_hash_.erase(found->second.record.credential_hash);
    computers_.erase(found);
    journal_.forget_computer(id);
}

std::string Contributors::why_not(const LiveComputer& computer) {
    const Volunteer& owner = volunteer(computer.record.volunteer);
    if (owner.state == MemberState::banned) return "this lab has banned this volunteer; ask the lab why";
    if (computer.record.state == MemberState::banned)
        return "this lab has banned this computer; ask the lab why";
    if (owner.state == MemberState::pending)
        return "waiting for a person at the lab to approve this volunteer";
    return {};
}

}  // namespace goblin::lab
