// What a test asks of an Error: its message and kind.
#pragma once

#include <QString>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"

namespace goblin {

// The message of the Error that the call throws; empty when it throws none.
template <typename Call>
QString error_of(Call&& call) {
    try {
        std::forward<Call>(call)();
    } catch (const Error& error) {
        return QString::fromUtf8(error.what());
    }
    return {};
}

template <typename Call>
ErrorKind kind_of_error_of(Call&& call) {
    try {
        std::forward<Call>(call)();
    } catch (const Error& error) {
        return error.kind();
    }
    throw std::logic_error("the call threw no Error");
}

}  // namespace goblin

// The call must throw an Error whose message contains the text.
#define VERIFY_REFUSED(call, text)                                                            \
    do {                                                                                      \
        const QString refusal = goblin::error_of([&] { (void)(call); });                      \
        QVERIFY2(refusal.contains(text), qPrintable("found the message: '" + refusal + "'")); \
    } while (false)
