// PUT and HEAD of a blob: the leaf stream is unpacked and written on blob threads as it arrives.
#include "core/error.hpp"
#include "core/work/leaf_stream.hpp"
#include "labcli/service/blob_job.hpp"
#include "labcli/service/routes.hpp"

namespace goblin::lab {

namespace {

constexpr size_t piece_bytes = size_t{256} << 10;

struct Upload {
    std::shared_ptr<BlobSink> sink;
    std::optional<UploadTurns::Turn> turn;
    uint64_t size_bytes = 0;
    uint64_t held = 0;
    std::optional<LeafDecoder> decoder;
    std::vector<uint8_t> piece;  // the next bytes of the stream are its first `filled`
    size_t filled = 0;
};

void begin(Upload& upload, UploadTurns& turns, const Caller& caller, const Digest& digest) {
    upload.turn = turns.take(caller.credential, digest);
    upload.turn->run([&] {
        upload.size_bytes = upload.sink->size_bytes();
        upload.held = upload.sink->leaves_held();
    });
    BlobSink* const sink = upload.sink.get();
    upload.decoder.emplace(
        upload.size_bytes, upload.held,
        [sink](uint64_t index, std::span<const std::byte> leaf) { sink->write_leaf(index, leaf); });
}

void take_piece(Upload& upload) {
    upload.turn->run([&] {
        if (!upload.sink->wanted())
            throw Error(ErrorKind::cancelled,
                        "expected an upload that the lab still takes, found one that is over or had to give "
                        "way to faster ones; ask how far it is");
        upload.decoder->add(std::span(upload.piece).first(upload.filled));
    });
}

// Waits for a job, turning what the contributor did wrong into a refusal.
asio::awaitable<void> finish_step(HttpStream& stream, BlobJob& job) {
    try {
        co_await finish_blob_job(stream, job);
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::input) throw refused(400, "message", error.what());
        if (error.kind() == ErrorKind::cancelled) throw refused(409, "leaf", error.what());
        throw;
    }
}

std::string leaves_header(uint64_t leaves) {
    return fmt::format("Goblin-Leaves: {}\r\n", leaves);
}

asio::awaitable<std::shared_ptr<Upload>> open_upload(RequestAtHand& request, const Caller& caller,
                                                     Digest digest) {
    HttpStream& stream = request.stream;
    auto opening = stream.pending<Answer<std::shared_ptr<BlobSink>>>();
    request.parts.door.open_upload(caller, digest, opening.receiver());
    Answer<std::shared_ptr<BlobSink>> opened = co_await stream.answer(opening, true);
    auto upload = std::make_shared<Upload>();
    upload->sink = accepted(std::move(opened));
    co_return upload;
}

// What has arrived goes to the blob threads at once, so that whole leaves are kept whenever the connection
// breaks; while they are busy the socket collects more, or holds the peer back.
asio::awaitable<void> take_body(RequestAtHand& request, std::shared_ptr<Upload> upload) {
    HttpStream& stream = request.stream;
    upload->piece.resize(std::min<uint64_t>(piece_bytes, stream.body_left()));
    while (stream.body_left() > 0) {
        const size_t taken = co_await stream.read_piece(upload->piece);
        upload->filled = taken;
        auto writing = start_blob_job(request.parts.blob_threads, stream, upload, take_piece);
        co_await finish_step(stream, writing);
    }
}

}  // namespace

asio::awaitable<void> receive_blob(RequestAtHand& request, Digest digest) {
    HttpStream& stream = request.stream;
    ServiceParts& parts = request.parts;
    const Caller caller = request.caller();
    const uint64_t first = leaf_of(request.head);
    const auto share = parts.admission.take(Resource::transfer, stream.peer().address, 1);
    if (!share)
        throw refused(503, "busy", "expected a free transfer, found all in use; try again later", 1000);

    const std::shared_ptr<Upload> upload = co_await open_upload(request, caller, digest);
    UploadTurns* const turns = &parts.upload_turns;
    auto beginning =
        start_blob_job(parts.blob_threads, stream, upload,
                       [turns, caller, digest](Upload& opened) { begin(opened, *turns, caller, digest); });
    co_await finish_step(stream, beginning);
    if (first != upload->held) {
        Refusal refusal =
            refused(409, "leaf", fmt::format("expected leaf {} next, found {}", upload->held, first)).refusal;
        Reply reply = reply_of(refusal);
        reply.more_headers += leaves_header(upload->held);
        co_await stream.reply(std::move(reply));
        co_return;
    }
    if (const uint64_t longest = raw_stream_bytes(upload->size_bytes, first); stream.body_left() > longest)
        throw refused(413, "length",
                      fmt::format("expected at most {} bytes from leaf {}, found {}", longest, first,
                                  stream.body_left()));
    co_await take_body(request, upload);

    Reply reply;
    reply.status = upload->decoder->complete() ? 204 : 202;
    reply.more_headers = leaves_header(upload->decoder->next_leaf());
    if (upload->decoder->complete()) {
        auto finishing = stream.pending<Answer<Nothing>>();
        parts.door.finish_upload(caller, digest, upload->sink, finishing.receiver());
        Answer<Nothing> finished = co_await stream.answer(finishing, true);
        accepted(std::move(finished));
    }
    co_await stream.reply(std::move(reply));
}

asio::awaitable<void> tell_upload(RequestAtHand& request, Digest digest) {
    HttpStream& stream = request.stream;
    const Caller caller = request.caller();
    const std::shared_ptr<Upload> upload = co_await open_upload(request, caller, digest);
    auto asking = start_blob_job(request.parts.blob_threads, stream, upload,
                                 [](Upload& opened) { opened.held = opened.sink->leaves_held(); });
    co_await finish_step(stream, asking);
    Reply reply;
    reply.more_headers = leaves_header(upload->held);
    co_await stream.reply(std::move(reply));
}

}  // namespace goblin::lab
