// QVERIFY for values that say themselves what is wrong.
#pragma once

#include <QTest>
#include <string>

// The text must be empty; shown when it isn't.
#define VERIFY_EMPTY(expression)                \
    do {                                        \
        const std::string found = (expression); \
        QVERIFY2(found.empty(), found.c_str()); \
    } while (false)

// Shows what was found when it is another value; for JSON and whatever else has dump().
#define VERIFY_JSON(expression, expected)                    \
    do {                                                     \
        const auto found = (expression);                     \
        QVERIFY2(found == (expected), found.dump().c_str()); \
    } while (false)
