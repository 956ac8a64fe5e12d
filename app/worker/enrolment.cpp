// Asks the lab who it is, then signs its nonce and shows the invitation's token.
#include "app/worker/enrolment.hpp"

#include "app/worker/lab_request.hpp"
#include "core/work/plain_text.hpp"

namespace goblin::worker {

namespace {
constexpr uint64_t update_ms = 3'600'000;
}

Digest token_mark(const InvitationLink& link) {
    return sha256(link.token);
}

Enrolment::Enrolment(InvitationLink link, const Digest& lab, const WorkerDirectory& directory,
                     Computer computer, Log& log, Events events, QObject* parent)
    : QObject(parent),
      link_(std::move(link)),
      address_{link_.host, link_.port, lab},
      identity_(directory.seed(), lab),
      computer_(std::move(computer)),
      events_(std::move(events)),
      pin_(directory.lab_folder(lab), lab, log),
      connection_(address_, pin_) {
    again_.setSingleShot(true);
    connect(&again_, &QTimer::timeout, this, &Enrolment::ask_who_it_is);
    again_.start(0);
}

void Enrolment::ask_who_it_is() {
    HttpRequest request;
    request.target = "/v1/lab";
    ask_lab(connection_, std::move(request), limits::small_body_bytes, [this](const LabAnswer& answer) {
        const std::optional<Bytes> body = body_of(answer);
        if (!body) return;
        LabInfo info;
        try {
            if (const std::string mismatch =
                    version_mismatch(leading_versions(*body), "lab node", "contributor");
                !mismatch.empty())
                return try_again(mismatch, update_ms);
            info = decode_message<LabInfo>(*body);
        } catch (const Error& error) {
            return try_again(error.what(), 0);
        }
        const std::vector<Digest>& shown = connection_.shown_keys();
        if (info.key != shown.front().bytes)
            return events_.refused(
                "expected the lab to name the key that it shows, found another; ask the lab for a new "
                "invitation link");
        if (events_.known_otherwise(shown)) return;
        enrol(info);
    });
}

void Enrolment::enrol(const LabInfo& info) {
    EnrolRequest request;
    request.token = link_.token;
    request.volunteer_key = identity_.public_key();
    request.nonce = info.nonce;
    request.signature = identity_.sign(enrolment_statement(Digest{info.key}, link_.token, info.nonce));
    request.computer = computer_.mark;
    request.computer_name = computer_.name;
    ask_lab(connection_, post_request("/v1/enrol", encode_message(request)), limits::small_body_bytes,
            [this, info](const LabAnswer& answer) {
                const std::optional<Bytes> body = body_of(answer);
                if (!body) return;
                EnrolReply reply;
                try {
                    reply = decode_message<EnrolReply>(*body);
                } catch (const Error& error) {
                    return try_again(error.what(), 0);
                }
                LabRecord record;
                record.address = address_;
                record.name = info.name;
                record.computes = info.computes;
                record.contact = info.contact;
                record.credential = reply.credential;
                record.joined_by = token_mark(link_);
                events_.joined(std::move(record), reply.approved);
            });
}

std::optional<Bytes> Enrolment::body_of(const LabAnswer& answer) {
    if (const auto* body = std::get_if<Bytes>(&answer)) return *body;
    if (const auto* error = std::get_if<Error>(&answer)) {
        if (error->kind() == ErrorKind::denied)
            events_.refused(error->what());
        else
            try_again(error->what(), 0);
        return std::nullopt;
    }
    const auto& refusal = std::get<LabRefusal>(answer);
    switch (refusal.action) {
        case RefusalAction::forget:
        case RefusalAction::stop:
        case RefusalAction::drop_blob:
            events_.refused(refusal.text());
            break;
        case RefusalAction::update:
            try_again(refusal.text(), update_ms);
            break;
        case RefusalAction::wait_for_lab:
        case RefusalAction::try_again:
            try_again(refusal.text(), refusal.retry_after_ms);
            break;
    }
    return std::nullopt;
}

void Enrolment::try_again(const std::string& reason, uint64_t wait_ms) {
    again_.start(static_cast<int>(back_off_.next_ms(wait_ms)));
    events_.delayed(reason);
}

}  // namespace goblin::worker
