// Turns a message struct into CBOR and back from one description of its fields.
//
// A struct describes itself once:  template <class V> void describe(V& v, M& m) { v.field("name", m.name); …
// } Encoding writes a map with those keys in that order; decoding accepts exactly that, so there is one way
// to write a message. Fields that may be absent are std::optional and travel as null.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/work/cbor.hpp"
#include "core/work/digest.hpp"
#include "core/work/limits.hpp"

namespace goblin {

template <size_t size>
using FixedBytes = std::array<uint8_t, size>;
using Bytes = std::vector<uint8_t>;

struct FieldCounter {
    size_t count = 0;
    template <typename T>
    void field(std::string_view, T&, uint64_t = 0) {
        ++count;
    }
};

template <typename M>
size_t field_count() {
    FieldCounter counter;
    M message{};
    describe(counter, message);
    return counter.count;
}

class MessageEncoder {
  public:
    template <typename T>
    void field(std::string_view name, T& value, uint64_t = 0) {
        writer_.text(name);
        put(value);
    }
    template <typename M>
    static Bytes encode(const M& message) {
        MessageEncoder encoder;
        encoder.put(message);
        return encoder.writer_.take();
    }

  private:
    void put(const uint64_t& value) { writer_.integer(value); }
    void put(const bool& value) { writer_.boolean(value); }
    void put(const std::string& value) { writer_.text(value); }
    void put(const Bytes& value) { writer_.bytes(value); }
    void put(const Digest& value) { writer_.bytes(value.bytes); }
    template <size_t size>
    void put(const FixedBytes<size>& value) {
        writer_.bytes(value);
    }
    template <typename T>
    void put(const std::optional<T>& value) {
        if (value)
            put(*value);
        else
            writer_.null();
    }
    template <typename T>
    void put(const std::vector<T>& values) {
        writer_.array(values.size());
        for (const T& value : values) put(value);
    }
    template <typename M>
    requires std::is_class_v<M>
    void put(const M& message) {
        static const size_t count = field_count<M>();
        writer_.map(count);
        describe(*this,
                 const_cast<M&>(message));  // describe() serves both directions; the encoder only reads
    }
    template <typename E>
    requires std::is_enum_v<E>
    void put(const E& value) { writer_.integer(static_cast<uint64_t>(value)); }

    CborWriter writer_;
};

// `limit` is the longest text or byte string, or the longest list, that the field accepts. An enumeration E
// is accepted up to its enumerator `last`.
class MessageDecoder {
  public:
    template <typename T>
    void field(std::string_view name, T& value, uint64_t limit = 0) {
        const size_t start = reader_.offset();
        if (const std::string_view found = reader_.text(limits::name_characters); found != name)
            throw Error(ErrorKind::input, "message: expected the field '{}' at byte {}, found another", name,
                        start);
        get(value, limit);
    }
    // Throws ErrorKind::input naming the offset of what was not expected.
    template <typename M>
    static M decode(std::span<const uint8_t> input) {
        MessageDecoder decoder(input);
        M message{};
        decoder.get(message, 0);
        decoder.reader_.finish();
        return message;
    }

  private:
    explicit MessageDecoder(std::span<const uint8_t> input) : reader_(input) {}

    void get(uint64_t& value, uint64_t) { value = reader_.integer(); }
    void get(bool& value, uint64_t) { value = reader_.boolean(); }
    void get(std::string& value, uint64_t limit) { value = reader_.text(limit); }
    void get(Bytes& value, uint64_t limit) {
        const auto bytes = reader_.bytes(limit);
        value.assign(bytes.begin(), bytes.end());
    }
    void get(Digest& value, uint64_t) { get(value.bytes, 0); }
    template <size_t size>
    void get(FixedBytes<size>& value, uint64_t) {
        const size_t start = reader_.offset();
        const auto bytes = reader_.bytes(size);
        if (bytes.size() != size)
            throw Error(ErrorKind::input, "message: expected {} bytes at byte {}, found {}", size, start,
                        bytes.size());
        std::copy(bytes.begin(), bytes.end(), value.begin());
    }
    template <typename T>
    void get(std::optional<T>& value, uint64_t limit) {
        value.reset();
        if (reader_.null()) return;
        value.emplace();
        get(*value, limit);
    }
    template <typename T>
    void get(std::vector<T>& values, uint64_t limit) {
        reader_.enter();
        const uint64_t length = reader_.array(limit);
        values.clear();
        // No reserve(): the length is the sender's claim; memory follows what really arrives.
        for (uint64_t i = 0; i < length; ++i) get(values.emplace_back(), limits::text_bytes);
        reader_.leave();
    }
    template <typename M>
    requires std::is_class_v<M>
    void get(M& message, uint64_t) {
        static const size_t count = field_count<M>();
        const size_t start = reader_.offset();
        reader_.enter();
        if (const uint64_t found = reader_.map(limits::name_characters); found != count)
            throw Error(ErrorKind::input, "message: expected {} fields at byte {}, found {}", count, start,
                        found);
        describe(*this, message);
        reader_.leave();
    }
    template <typename E>
    requires std::is_enum_v<E>
    void get(E& value, uint64_t) {
        const size_t start = reader_.offset();
        const uint64_t number = reader_.integer();
        if (number > static_cast<uint64_t>(E::last))
            throw Error(ErrorKind::input, "message: expected a value from 0 to {} at byte {}, found {}",
                        static_cast<uint64_t>(E::last), start, number);
        value = static_cast<E>(number);
    }

    CborReader reader_;
};

template <typename M>
Bytes encode_message(const M& message) {
    return MessageEncoder::encode(message);
}
template <typename M>
M decode_message(std::span<const uint8_t> input) {
    return MessageDecoder::decode<M>(input);
}

}  // namespace goblin
