// GET of a blob: leaves are read and packed on blob threads, one ahead of the one being sent.
#include "core/work/leaf_stream.hpp"
#include "labcli/service/blob_job.hpp"
#include "labcli/service/routes.hpp"

namespace goblin::lab {

namespace {

struct Download {
    std::shared_ptr<BlobSource> source;
    uint64_t size_bytes = 0;
    std::optional<bool> pack;     // decided by the first leaf that is asked for
    std::vector<uint8_t> framed;  // a chunk with one leaf of the stream
};

void read_leaf(Download& download, uint64_t index) {
    thread_local std::vector<std::byte> leaf;
    leaf.resize(leaf_length(download.size_bytes, index));
    download.source->read_leaf(index, leaf);
    if (!download.pack) download.pack = packing_helps(leaf);
    std::vector<uint8_t>& framed = download.framed;
    framed.clear();
    framed.reserve(chunk_head_bytes + leaf.size() + 16);
    framed.resize(chunk_head_bytes);
    append_leaf(framed, leaf, *download.pack);
    framed.resize(framed.size() + chunk_tail_bytes);
    frame_chunk(framed);
}

asio::awaitable<std::shared_ptr<Download>> open_download(RequestAtHand& request, Digest digest) {
    HttpStream& stream = request.stream;
    auto opening = stream.pending<Answer<std::shared_ptr<BlobSource>>>();
    request.parts.door.open_blob(request.caller(), digest, opening.receiver());
    Answer<std::shared_ptr<BlobSource>> opened = co_await stream.answer(opening, true);
    auto download = std::make_shared<Download>();
    download->source = accepted(std::move(opened));
    auto job = start_blob_job(request.parts.blob_threads, stream, download,
                              [](Download& begun) { begun.size_bytes = begun.source->size_bytes(); });
    co_await finish_blob_job(stream, job);
    co_return download;
}

// The first leaf is read before the head is sent, so that a blob which can't be read is refused; later there
// is nothing to do but to break the connection.
asio::awaitable<void> send_leaves(RequestAtHand& request, std::shared_ptr<Download> download,
                                  uint64_t first) {
    HttpStream& stream = request.stream;
    WorkPool& threads = request.parts.blob_threads;
    const uint64_t leaves = leaf_count(download->size_bytes);
    const auto read = [&](uint64_t index) {
        return start_blob_job(threads, stream, download,
                              [index](Download& begun) { read_leaf(begun, index); });
    };
    std::vector<uint8_t> sending;
    auto reading = read(first);
    co_await finish_blob_job(stream, reading);
    co_await stream.begin_chunks("application/octet-stream");
    std::string failure;
    for (uint64_t index = first; index < leaves && failure.empty(); ++index) {
        std::swap(sending, download->framed);
        if (index + 1 < leaves) reading = read(index + 1);
        co_await stream.write_framed_chunk(sending);
        if (index + 1 == leaves) continue;
        try {
            co_await finish_blob_job(stream, reading);
        } catch (const Error& error) {
            failure = error.what();
        }
    }
    if (!failure.empty()) throw ConnectionEnd{failure};
    co_await stream.end_chunks();
}

}  // namespace

asio::awaitable<void> send_blob(RequestAtHand& request, Digest digest) {
    HttpStream& stream = request.stream;
    const uint64_t first = leaf_of(request.head);
    const auto share = request.parts.admission.take(Resource::transfer, stream.peer().address, 1);
    if (!share)
        throw refused(503, "busy", "expected a free transfer, found all in use; try again later", 1000);

    const std::shared_ptr<Download> download = co_await open_download(request, digest);
    const uint64_t leaves = leaf_count(download->size_bytes);
    if (first >= leaves)
        throw refused(409, "leaf", fmt::format("expected a leaf below {}, found {}", leaves, first));
    co_await send_leaves(request, download, first);
}

}  // namespace goblin::lab
