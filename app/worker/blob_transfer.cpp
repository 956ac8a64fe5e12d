// Fetches blobs into part files and uploads outputs as leaf streams.
#include "app/worker/blob_transfer.hpp"

#include <charconv>
#include <memory>

#include "app/worker/lab_request.hpp"
#include "app/worker/part_file.hpp"
#include "core/work/leaf_stream.hpp"

namespace goblin::worker {

namespace {

TransferOutcome trouble(TransferOutcome::Kind kind, std::string reason) {
    TransferOutcome outcome;
    outcome.kind = kind;
    outcome.reason = std::move(reason);
    return outcome;
}

TransferOutcome outcome_of(const Error& error) {
    switch (error.kind()) {
        case ErrorKind::io:
            return trouble(TransferOutcome::Kind::disk, error.what());
        case ErrorKind::input:
            return trouble(TransferOutcome::Kind::wrong, error.what());
        default:
            return trouble(TransferOutcome::Kind::network, error.what());
    }
}

TransferOutcome outcome_of(LabRefusal refusal) {
    TransferOutcome outcome = trouble(TransferOutcome::Kind::refused, refusal.text());
    outcome.refusal = std::move(refusal);
    return outcome;
}

std::string blob_target(const Digest& digest, uint64_t leaf) {
    return fmt::format("/v1/blobs/{}?leaf={}", digest.hex(), leaf);
}

// A fetch's state, shared by the handlers of its request.
struct Fetch {
    Fetch(FetchOrder fetch_order)
        : order(std::move(fetch_order)),
          part(order.part, order.spec),
          first_leaf(part.next_leaf()),
          decoder(order.spec.size_bytes(), part.next_leaf(),
                  [this](uint64_t index, std::span<const std::byte> leaf) { part.append(index, leaf); }) {}

    TransferOutcome finish() {
        if (!part.complete())
            throw Error(ErrorKind::network, "expected the rest of a blob, found the end of the answer");
        if (part.finish(order.digest, order.place)) return {};
        return trouble(TransferOutcome::Kind::wrong,
                       "expected a blob with the digest that the task names, found another");
    }

    FetchOrder order;
    PartFile part;
    uint64_t first_leaf;
    LeafDecoder decoder;
    ResponseHead head;
    Bytes refusal_body;
};

// Calls `work` and gives its outcome, or that of what it threw.
template <typename Work>
TransferOutcome outcome_from(Work work) {
    try {
        return work();
    } catch (const Error& error) {
        return outcome_of(error);
    }
}

}  // namespace

void fetch_blob(HttpConnection& connection, FetchOrder order, TransferDone done) {
    std::shared_ptr<Fetch> fetch;
    try {
        fetch = std::make_shared<Fetch>(std::move(order));
    } catch (const Error& error) {
        return done(outcome_of(error));
    }
    if (fetch->part.complete()) return done(outcome_from([&] { return fetch->finish(); }));
    HttpRequest request;
    request.target = blob_target(fetch->order.digest, fetch->part.next_leaf());
    request.fields.push_back(authorization(fetch->order.credential));
    HttpHandlers handlers;
    handlers.head = [fetch](const ResponseHead& head) { fetch->head = head; };
    handlers.body = [fetch](std::span<const uint8_t> piece) {
        if (fetch->head.status == 200) return fetch->decoder.add(piece);
        if (fetch->refusal_body.size() + piece.size() > limits::small_body_bytes)
            throw Error(ErrorKind::network, "expected a short refusal, found a longer one");
        fetch->refusal_body.insert(fetch->refusal_body.end(), piece.begin(), piece.end());
    };
    handlers.done = [fetch, done] {
        if (fetch->head.status != 200) return done(outcome_of(refusal_of(fetch->head, fetch->refusal_body)));
        done(outcome_from([&] { return fetch->finish(); }));
    };
    handlers.failed = [fetch, done](const Error& error) {
        TransferOutcome outcome = outcome_of(error);
        outcome.progressed = fetch->part.next_leaf() > fetch->first_leaf;
        done(std::move(outcome));
    };
    connection.send(std::move(request), std::move(handlers));
}

namespace {

// An upload's state, shared by the handlers of its requests: what has arrived already? then the rest. A
// stream that is packed goes in batches, since its length must be known beforehand.
class Upload : public std::enable_shared_from_this<Upload> {
  public:
    Upload(HttpConnection& connection, UploadOrder order, TransferDone done)
        : connection_(connection),
          order_(std::move(order)),
          done_(std::move(done)),
          file_(File::open_to_read(order_.file)) {}

    void start() {
        if (!file_is_right())
            return done_(trouble(TransferOutcome::Kind::spoiled,
                                 "expected the output that was committed to, found another file"));
        HttpRequest request = request_to("HEAD", "/v1/blobs/" + order_.digest.hex());
        const auto self = shared_from_this();
        HttpHandlers handlers;
        handlers.head = [self](const ResponseHead& head) { self->head_ = head; };
        handlers.done = [self] {
            self->guarded([&] {
                if (self->head_.status == 200) return self->go_on();
                if (self->head_.status == 409) return self->end({});  // all of it has arrived before
                self->end(outcome_of(refusal_of(self->head_, {})));
            });
        };
        handlers.failed = [self](const Error& error) { self->end(outcome_of(error)); };
        connection_.send(std::move(request), std::move(handlers));
    }

  private:
    uint64_t leaves() const { return leaf_count(order_.spec.size_bytes()); }

    HttpRequest request_to(std::string method, std::string target) const {
        HttpRequest request;
        request.method = std::move(method);
        request.target = std::move(target);
        request.fields.push_back(authorization(order_.credential));
        return request;
    }

    bool file_is_right() {
        const uint64_t size = order_.spec.size_bytes();
        if (file_.identity().size_bytes != size) return false;
        if (!order_.check_by) return true;
        DigestStream stream(*order_.check_by, order_.spec);
        for (uint64_t leaf = 0; leaf < leaf_count(size); ++leaf) stream.add(read_leaf(leaf));
        return stream.finish() == order_.digest;
    }

    std::span<const std::byte> read_leaf(uint64_t index) {
        leaf_.resize(leaf_length(order_.spec.size_bytes(), index));
        file_.read_at(index * leaf_size_bytes, leaf_);
        return leaf_;
    }

    // Sends what the lab's last answer says it lacks.
    void go_on() {
        const std::string_view text = head_.field("Goblin-Leaves");
        uint64_t held = 0;
        const auto [end_of_number, error] = std::from_chars(text.data(), text.data() + text.size(), held);
        if (error != std::errc{} || end_of_number != text.data() + text.size() || held > leaves())
            return end(trouble(TransferOutcome::Kind::network,
                               "expected the number of leaves that arrived, found none"));
        if (++requests_ > leaves() + requests_beyond)
            return end(trouble(TransferOutcome::Kind::network,
                               "expected the lab to take leaves, found it taking none"));
        progressed_ = progressed_ || held > next_leaf_;
        next_leaf_ = held;
        HttpRequest request = request_to("PUT", blob_target(order_.digest, next_leaf_));
        if (next_leaf_ < leaves() && packing_helps(read_leaf(next_leaf_)))
            fill_with_batch(request);
        else
            stream_rest(request);
        put(std::move(request));
    }

    void fill_with_batch(HttpRequest& request) {
        std::vector<uint8_t> batch;
        for (uint64_t leaf = next_leaf_; leaf < leaves() && batch.size() < batch_bytes; ++leaf)
            append_leaf(batch, read_leaf(leaf), true);
        request.body =
            QByteArray(reinterpret_cast<const char*>(batch.data()), static_cast<qsizetype>(batch.size()));
    }

    void stream_rest(HttpRequest& request) {
        if (next_leaf_ == leaves()) return;
        request.streamed_bytes = raw_stream_bytes(order_.spec.size_bytes(), next_leaf_);
        request.next_piece = [self = shared_from_this(), leaf = next_leaf_](QByteArray& piece) mutable {
            std::vector<uint8_t> stream;
            append_leaf(stream, self->read_leaf(leaf++), false);
            piece.append(reinterpret_cast<const char*>(stream.data()), static_cast<qsizetype>(stream.size()));
        };
    }

    void put(HttpRequest request) {
        const auto self = shared_from_this();
        HttpHandlers handlers;
        refusal_body_.clear();
        handlers.head = [self](const ResponseHead& head) { self->head_ = head; };
        handlers.body = [self](std::span<const uint8_t> piece) {
            if (self->refusal_body_.size() + piece.size() > limits::small_body_bytes)
                throw Error(ErrorKind::network, "expected a short answer, found a longer one");
            self->refusal_body_.insert(self->refusal_body_.end(), piece.begin(), piece.end());
        };
        handlers.done = [self] { self->guarded([&] { self->answered(); }); };
        handlers.failed = [self](const Error& error) { self->end(outcome_of(error)); };
        connection_.send(std::move(request), std::move(handlers));
    }

    void answered() {
        const bool other_leaf = head_.status == 409 && !head_.field("Goblin-Leaves").empty();
        if (head_.status == 202 || other_leaf) return go_on();
        if (head_.status >= 200 && head_.status < 300) return end({});
        end(outcome_of(refusal_of(head_, refusal_body_)));
    }

    void end(TransferOutcome outcome) {
        outcome.progressed = progressed_;
        done_(std::move(outcome));
    }

    // Our own file failing is the output's end.
    template <typename Work>
    void guarded(Work work) {
        try {
            work();
        } catch (const Error& error) {
            end(trouble(TransferOutcome::Kind::spoiled, error.what()));
        }
    }

    static constexpr size_t batch_bytes = size_t{8} << 20;
    static constexpr uint64_t requests_beyond = 3;

    HttpConnection& connection_;
    UploadOrder order_;
    TransferDone done_;
    File file_;
    ResponseHead head_;
    Bytes refusal_body_;
    std::vector<std::byte> leaf_;
    uint64_t next_leaf_ = 0;
    uint64_t requests_ = 0;
    bool progressed_ = false;
};

}  // namespace

void upload_blob(HttpConnection& connection, UploadOrder order, TransferDone done) {
    try {
        std::make_shared<Upload>(connection, std::move(order), done)->start();
    } catch (const Error& error) {
        // The file is missing or can't be read: what was committed to is gone.
        done(trouble(TransferOutcome::Kind::spoiled, error.what()));
    }
}

}  // namespace goblin::worker
