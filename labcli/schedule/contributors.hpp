// Contributors: the lab's register of invitations, volunteers and computers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "labcli/records/journal.hpp"
#include "labcli/schedule/live_computer.hpp"

namespace goblin::lab {

struct EnrolmentRules {
    Digest lab_key;
    SecretKey nonce_secret{};           // of this run of the lab node
    bool approve_by_hand = false;       // newcomers wait for `node approve`
    uint64_t attempts_per_minute = 60;  // of wrong tokens, from one network
};

class Contributors {
  public:
    Contributors(EnrolmentRules rules, Journal& journal) : rules_(rules), journal_(journal) {}

    void load(std::vector<Invitation> invitations, std::vector<Volunteer> volunteers,
              std::vector<Computer> computers, ComputerId last_computer = 0);

    // The token goes into a link and is kept only as a hash. `wall_ms` is since 1970.
    Invitation invite(std::span<const uint8_t> token, uint64_t uses, uint64_t wall_ms, uint64_t valid_ms,
                      bool trusted);
    bool revoke(InvitationId id);
    const std::map<InvitationId, Invitation>& invitations() const { return invitations_; }

    // Checked in this order: token and its rate, expiry, nonce, signature, ban, uses left. `now_ms` is
    // monotonic, `wall_ms` since 1970.
    Answer<EnrolReply> enrol(const Peer& peer, const EnrolRequest& request, uint64_t now_ms,
                             uint64_t wall_ms);
    // Safe on any thread. Stateless, so that a flood of requests costs no memory.
    static Bytes fresh_nonce(const SecretKey& secret, uint64_t now_ms);

    // Null when nobody has that credential.
    LiveComputer* by_credential(const Credential& credential);
    LiveComputer* computer(ComputerId id);
    Volunteer& volunteer(VolunteerId id) { return volunteers_.at(id); }
    std::map<ComputerId, LiveComputer>& computers() { return computers_; }

    void set_state(LiveComputer& computer, MemberState state);
    void set_state(Volunteer& volunteer, MemberState state);
    void forget(ComputerId id);
    // Why this computer gets nothing, in plain words; empty when it may work.
    std::string why_not(const LiveComputer& computer);

  private:
    // Null for a token that the lab doesn't know or has revoked.
    Invitation* invitation_of(std::span<const uint8_t> token);
    // What of an enrolment is wrong, whoever the volunteer is.
    std::optional<Refusal> why_refused(const EnrolRequest& request, const Invitation* invitation,
                                       const Peer& peer, uint64_t now_ms, uint64_t wall_ms);
    Volunteer* volunteer_with(const FixedBytes<32>& key);
    LiveComputer* computer_with(const FixedBytes<16>& mark, VolunteerId volunteer);
    Volunteer& add_volunteer(const FixedBytes<32>& key, uint64_t wall_ms);
    LiveComputer& add_computer(const FixedBytes<16>& mark, VolunteerId volunteer, uint64_t wall_ms);
    // A new one in place of the computer's earlier one.
    Credential give_credential(LiveComputer& computer);
    bool nonce_is_fresh(const Bytes& nonce, uint64_t now_ms) const;
    bool too_many_attempts(const Peer& peer, uint64_t now_ms);

    EnrolmentRules rules_;
    Journal& journal_;
    std::map<InvitationId, Invitation> invitations_;
    std::map<VolunteerId, Volunteer> volunteers_;
    std::map<ComputerId, LiveComputer> computers_;
    ComputerId last_computer_ = 0;  // the highest number ever given, also to one forgotten since
    std::unordered_map<Digest, ComputerId, DigestHash> by_credential_hash_;

    struct Attempts {
        uint64_t window_start_ms = 0;
        uint64_t count = 0;
    };
    std::unordered_map<std::string, Attempts> wrong_tokens_;  // by network
};

}  // namespace goblin::lab
