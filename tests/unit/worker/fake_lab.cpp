// The fake lab's half of the protocol.
#include "tests/unit/worker/fake_lab.hpp"

#include <QUrl>
#include <QUrlQuery>
#include <cstring>

#include "core/error.hpp"
#include "core/work/hex.hpp"
#include "core/work/identity.hpp"
#include "core/work/leaf_stream.hpp"

namespace goblin::test {

namespace {

std::span<const uint8_t> bytes_of(const QByteArray& bytes) {
    return {reinterpret_cast<const uint8_t*>(bytes.constData()), static_cast<size_t>(bytes.size())};
}
QByteArray array_of(const Bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), static_cast<qsizetype>(bytes.size())};
}
FakeReply error_reply(int status, const std::string& code, const std::string& message) {
    FakeReply reply;
    reply.status = status;
    reply.body = array_of(encode_message(ErrorReply{code, message}));
    return reply;
}
FakeReply message_reply(const Bytes& message) {
    FakeReply reply;
    reply.body = array_of(message);
    return reply;
}
std::string path_of(const FakeRequest& request) {
    return request.target.substr(0, request.target.find('?'));
}
uint64_t leaf_of(const FakeRequest& request) {
    return QUrlQuery(QUrl(QString::fromStdString(request.target)).query())
        .queryItemValue("leaf")
        .toULongLong();
}
Digest digest_of(const FakeRequest& request) {
    return Digest::from_hex(path_of(request).substr(std::string("/v1/blobs/").size())).value_or(Digest{});
}

}  // namespace

Tensor numbers(const Shape& shape, int seed) {
    Tensor tensor(DType::f32, shape);
    uint64_t state = static_cast<uint64_t>(seed) * 0x9e3779b97f4a7c15u + 1;
    for (float& value : tensor.as<float>()) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value = static_cast<float>(state >> 40) / static_cast<float>(1 << 23) - 1;
    }
    return tensor;
}

FakeLab::FakeLab(Certificate certificate, const QHostAddress& address)
    : https(
          certificate,
          [this](const FakeRequest& request, const FakeHttps::Answer& answer) { handle(request, answer); },
          address) {
    info.name = "a lab of a test";
    info.computes = "products";
    info.contact = "nobody";
    info.key = certificate.key_digest.bytes;
    info.nonce = Bytes(16, 7);
    credential.fill(0x5a);
    https.cut_request = [this](const FakeRequest& request) {
        if (Assignment* assignment = committed_with(digest_of(request)))
            take_stream(*assignment, digest_of(request), leaf_of(request), request.body);
    };
}

void FakeLab::change_key(const Certificate& certificate) {
    info.key = certificate.key_digest.bytes;
    https.show(certificate);
    https.break_connections();
}

InvitationLink FakeLab::link() {
    InvitationLink link;
    link.host = https.serverAddress().toString().toStdString();
    link.port = port();
    link.lab_key.bytes = info.key;
    link.token = Bytes(16, ++links_);
    tokens.insert(link.token);
    return link;
}

AssignmentId FakeLab::add_product(const Tensor& a, const Tensor& b, bool inline_inputs,
                                  uint64_t duration_ms) {
    Task task;
    task.contract = contract_version;
    task.graph = product_graph(a.spec(), b.spec());
    for (const Tensor* input : {&a, &b}) {
        const Digest digest = tensor_digest({}, *input);
        task.inputs.push_back({digest, std::nullopt});
        if (inline_inputs) task.inputs.back().inline_bytes = frame_of(*input).bytes;
        blobs_.insert_or_assign(digest, input->clone());
    }
    const AssignmentId id = add_task(message_of(task), duration_ms);
    std::vector<Tensor> inputs;
    inputs.push_back(a.clone());
    inputs.push_back(b.clone());
    assignments_.at(id).expected = make_reference_engine()->run(task.graph, inputs, {});
    return id;
}

AssignmentId FakeLab::add_task(TaskMessage task, uint64_t duration_ms) {
    Assignment made;
    made.grant.assignment.fill(0);
    made.grant.assignment[0] = next_id_++;
    made.grant.key.fill(made.grant.assignment[0]);
    made.grant.duration_ms = duration_ms;
    made.grant.task = std::move(task);
    const AssignmentId id = made.grant.assignment;
    assignments_.emplace(id, std::move(made));
    to_grant_.push_back(id);
    look_at_waiting();
    return id;
}

void FakeLab::cancel(const AssignmentId& id, const std::string& reason) {
    assignments_.at(id).state = State::cancelled;
    assignments_.at(id).reason = reason;
    look_at_waiting();
}

void FakeLab::cancel_and_grant_anew(const AssignmentId& id) {
    to_grant_anew_ = id;
    look_at_waiting();
}

size_t FakeLab::count(State state) const {
    return static_cast<size_t>(std::count_if(assignments_.begin(), assignments_.end(),
                                             [state](const auto& e) { return e.second.state == state; }));
}

uint64_t FakeLab::downloads_of(const Digest& digest) const {
    return static_cast<uint64_t>(
        std::count_if(downloads.begin(), downloads.end(), [&](const auto& d) { return d.first == digest; }));
}

void FakeLab::handle(const FakeRequest& request, const FakeHttps::Answer& answer) {
    const std::string path = path_of(request);
    for (const auto& [prefix, refusal] : refusals)
        if (path.starts_with(prefix)) {
            FakeReply reply = error_reply(refusal.first, refusal.second, "said the test");
            reply.fields = refusal_fields;
            return answer(reply);
        }
    if (path == "/v1/lab") {
        info.versions = versions;
        return answer(message_reply(encode_message(info)));
    }
    if (path == "/v1/enrol") return answer(enrol(request));
    const auto shown = request.fields.find("authorization");
    if (shown == request.fields.end() || shown->second != "Goblin " + to_hex(credential))
        return answer(error_reply(401, "credential", "not known here"));
    if (path == "/v1/exchange") return exchange(request, answer);
    if (request.method == "GET") return answer(download(request));
    answer(upload(request));
}

FakeReply FakeLab::enrol(const FakeRequest& request) {
    const auto message = decode_message<EnrolRequest>(bytes_of(request.body));
    enrolments.push_back(message);
    if (tokens.erase(message.token) == 0)
        return error_reply(403, "token", "used up; ask the lab for a new link");
    Digest key;
    key.bytes = info.key;
    if (!verify_signature(message.volunteer_key, enrolment_statement(key, message.token, info.nonce),
                          message.signature))
        return error_reply(403, "signature", "not signed by that key");
    ++credential[0];
    return message_reply(encode_message(EnrolReply{credential, approves}));
}

void FakeLab::exchange(const FakeRequest& request, const FakeHttps::Answer& answer) {
    const auto message = decode_message<ExchangeRequest>(bytes_of(request.body));
    exchanges.push_back(message);
    if (waiting_) {
        const Waiting older = *std::exchange(waiting_, std::nullopt);
        delete older.timer;
        reply_to(older.answer, {});
    }
    const std::string number = to_hex(message.session) + std::to_string(message.sequence);
    if (const auto again = answered_.find(number); again != answered_.end())
        return reply_to(answer, again->second);
    ExchangeReply reply;
    take_results(message, reply);
    const bool news = fill_news(message, reply);
    if (news || message.wait_ms == 0) {
        answered_[number] = reply;
        if (replies_to_lose > 0) {
            --replies_to_lose;
            FakeReply lost;
            lost.cut = true;
            return answer(lost);
        }
        return reply_to(answer, reply);
    }
    waiting_ = Waiting{answer, message, new QTimer(&https)};
    waiting_->timer->setSingleShot(true);
    QObject::connect(waiting_->timer, &QTimer::timeout, &https, [this] {
        const Waiting over = *std::exchange(waiting_, std::nullopt);
        over.timer->deleteLater();
        reply_to(over.answer, {});
    });
    waiting_->timer->start(static_cast<int>(message.wait_ms));
}

void FakeLab::reply_to(const FakeHttps::Answer& answer, const ExchangeReply& reply) {
    ExchangeReply said = reply;
    said.versions = versions;
    said.wait_ms = wait_ms;
    said.notice = notice;
    answer(message_reply(encode_message(said)));
}

void FakeLab::look_at_waiting() {
    if (!waiting_) return;
    ExchangeReply reply;
    if (!fill_news(waiting_->request, reply)) return;
    const Waiting over = *std::exchange(waiting_, std::nullopt);
    over.timer->deleteLater();
    reply_to(over.answer, reply);
}

void FakeLab::take_results(const ExchangeRequest& request, ExchangeReply& reply) {
    for (const Result& result : request.results) {
        const auto found = assignments_.find(result.assignment);
        if (found == assignments_.end()) {
            reply.acknowledged.push_back({result.assignment, ReceiptKind::refused, "not known"});
            continue;
        }
        Assignment& assignment = found->second;
        Receipt receipt{result.assignment, ReceiptKind::taken, {}};
        switch (result.kind) {
            case ResultKind::committed:
                ++assignment.times_committed;
                if (!assignment.digests.empty()) receipt.kind = ReceiptKind::repeated;
                assignment.digests = result.digests;
                if (assignment.state == State::issued) assignment.state = State::committed;
                if (!asks_for_outputs && decides) assignment.state = State::agreed;
                break;
            case ResultKind::data:
                take_data(assignment, result);
                break;
            case ResultKind::failed:
            case ResultKind::handed_back:
                if (assignment.state == State::returned || assignment.state == State::agreed) {
                    receipt = {result.assignment, ReceiptKind::refused, "the numbers have arrived"};
                    break;
                }
                assignment.state = State::ended;
                assignment.end_kind = result.kind;
                assignment.reason = result.reason;
        }
        reply.acknowledged.push_back(receipt);
    }
}

void FakeLab::take_data(Assignment& assignment, const Result& result) {
    bool right = result.outputs.size() == assignment.digests.size();
    for (size_t i = 0; right && i < result.outputs.size(); ++i) {
        const Tensor output = tensor_of(frame_of(result.outputs[i]));
        right = tensor_digest(assignment.grant.key, output) == assignment.digests[i] &&
                output.same_bits(assignment.expected[i]);
    }
    assignment.state = !right ? State::disagreed : decides ? State::agreed : State::returned;
}

bool FakeLab::fill_news(const ExchangeRequest& request, ExchangeReply& reply) {
    const std::set<AssignmentId> holding(request.holding.begin(), request.holding.end());
    for (auto& [id, assignment] : assignments_) {
        if (!holding.contains(id)) continue;
        switch (assignment.state) {
            case State::committed:
                if (asks_for_outputs) reply.send.push_back(id);
                assignment.asked = asks_for_outputs;
                break;
            case State::agreed:
                reply.decided.push_back({id, true, 1, {}});
                break;
            case State::disagreed:
                reply.decided.push_back({id, false, 0, "the test says so"});
                break;
            case State::cancelled:
                reply.cancel.push_back({id, assignment.reason});
                break;
            case State::issued:
            case State::returned:
            case State::ended:
                break;
        }
    }
    for (const AssignmentId& id : request.holding)
        if (!assignments_.contains(id)) reply.cancel.push_back({id, "not known"});
    // What was lost with a reply is sent again.
    for (const auto& [id, assignment] : assignments_) {
        const bool handed_out = std::find(to_grant_.begin(), to_grant_.end(), id) == to_grant_.end();
        if (handed_out && assignment.state == State::issued && !holding.contains(id))
            reply.tasks.push_back(assignment.grant);
    }
    if (const auto anew = std::exchange(to_grant_anew_, std::nullopt)) {
        reply.cancel.push_back({*anew, "granted anew"});
        reply.tasks.push_back(assignments_.at(*anew).grant);
    }
    while (!to_grant_.empty() && (grants_more_than_wanted || reply.tasks.size() < request.want.tasks)) {
        reply.tasks.push_back(assignments_.at(to_grant_.front()).grant);
        to_grant_.pop_front();
    }
    return !reply.acknowledged.empty() || !reply.tasks.empty() || !reply.send.empty() ||
           !reply.decided.empty() || !reply.cancel.empty();
}

FakeReply FakeLab::download(const FakeRequest& request) {
    const Digest digest = digest_of(request);
    const uint64_t first = leaf_of(request);
    const auto blob = blobs_.find(digest);
    if (blob == blobs_.end()) return error_reply(404, "blob", "no such blob");
    downloads.emplace_back(digest, first);
    std::vector<uint8_t> stream;
    const uint64_t size = blob->second.size_bytes();
    for (uint64_t leaf = first; leaf < leaf_count(size); ++leaf) {
        const auto bytes = blob->second.bytes().subspan(leaf * leaf_size_bytes, leaf_length(size, leaf));
        std::vector<std::byte> copy(bytes.begin(), bytes.end());
        if (sends_wrong_bytes && !copy.empty()) copy[0] ^= std::byte{1};
        append_leaf(stream, copy, packing_helps(copy));
    }
    FakeReply reply = message_reply(stream);
    reply.chunked = true;
    reply.cut_after = std::exchange(cut_next_download, std::nullopt);
    return reply;
}

FakeLab::Assignment* FakeLab::committed_with(const Digest& digest) {
    for (auto& [id, assignment] : assignments_)
        if (std::find(assignment.digests.begin(), assignment.digests.end(), digest) !=
            assignment.digests.end())
            return &assignment;
    return nullptr;
}

void FakeLab::take_stream(Assignment& assignment, const Digest& digest, uint64_t first,
                          const QByteArray& stream) {
    const auto place = static_cast<size_t>(
        std::find(assignment.digests.begin(), assignment.digests.end(), digest) - assignment.digests.begin());
    Bytes& held = assignment.uploads[digest];
    LeafDecoder decoder(assignment.expected.at(place).size_bytes(), first,
                        [&](uint64_t, std::span<const std::byte> leaf) {
                            const auto* bytes = reinterpret_cast<const uint8_t*>(leaf.data());
                            held.insert(held.end(), bytes, bytes + leaf.size());
                        });
    decoder.add(bytes_of(stream));
}

FakeReply FakeLab::upload(const FakeRequest& request) {
    const Digest digest = digest_of(request);
    Assignment* assignment = committed_with(digest);
    if (assignment == nullptr) return error_reply(404, "blob", "not committed to");
    if (assignment->state == State::returned || assignment->state == State::agreed)
        return error_reply(409, "complete", "it is there");
    if (!assignment->asked) return error_reply(403, "unasked", "not asked for");
    const auto place =
        static_cast<size_t>(std::find(assignment->digests.begin(), assignment->digests.end(), digest) -
                            assignment->digests.begin());
    const uint64_t size = assignment->expected.at(place).size_bytes();
    const uint64_t held = assignment->uploads[digest].size() / leaf_size_bytes;
    FakeReply reply;
    if (request.method == "HEAD") {
        reply.fields.push_back("Goblin-Leaves: " + std::to_string(held));
        return reply;
    }
    puts.emplace_back(digest, leaf_of(request));
    if (leaf_of(request) != held) {
        reply = error_reply(409, "leaf", "another leaf is next");
        reply.fields.push_back("Goblin-Leaves: " + std::to_string(held));
        return reply;
    }
    take_stream(*assignment, digest, held, request.body);
    const bool complete = assignment->uploads[digest].size() == size;
    reply.status = complete ? 204 : 202;
    reply.fields.push_back(
        "Goblin-Leaves: " +
        std::to_string(complete ? leaf_count(size) : assignment->uploads[digest].size() / leaf_size_bytes));
    if (complete) check_upload(*assignment);
    return reply;
}

void FakeLab::check_upload(Assignment& assignment) {
    for (size_t i = 0; i < assignment.digests.size(); ++i) {
        const auto upload = assignment.uploads.find(assignment.digests[i]);
        if (upload == assignment.uploads.end() ||
            upload->second.size() != assignment.expected[i].size_bytes())
            return;
        Tensor output(assignment.expected[i].spec());
        if (output.size_bytes() > 0)
            std::memcpy(output.bytes().data(), upload->second.data(), output.size_bytes());
        const bool right = tensor_digest(assignment.grant.key, output) == assignment.digests[i] &&
                           output.same_bits(assignment.expected[i]);
        assignment.state = !right ? State::disagreed : decides ? State::agreed : State::returned;
    }
    look_at_waiting();
}

}  // namespace goblin::test
