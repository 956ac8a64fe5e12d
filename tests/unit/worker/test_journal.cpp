// The journal after a kill at any byte, damage, a full disk, and a long life.
#include <dlfcn.h>
#include <sys/resource.h>

#include <QTemporaryDir>
#include <QtTest>
#include <csignal>
#include <fstream>

#include "app/worker/journal.hpp"
#include "tests/support/error_of.hpp"

using namespace goblin;
using namespace goblin::worker;
namespace fs = std::filesystem;

namespace {

bool refuses_to_cut = false;

}  // namespace

// Stands in for the C library's.
extern "C" int truncate(const char* path, off_t length) {
    using Truncate = int (*)(const char*, off_t);
    static const auto real = reinterpret_cast<Truncate>(dlsym(RTLD_NEXT, "truncate"));
    if (!refuses_to_cut) return real(path, length);
    errno = EPERM;
    return -1;
}

namespace {

AssignmentId id_of(uint8_t number) {
    AssignmentId id{};
    id[0] = number;
    return id;
}

Grant grant_of(uint8_t number, size_t input_bytes = 8) {
    Grant grant;
    grant.assignment = id_of(number);
    grant.key.fill(number);
    grant.duration_ms = number;
    const TensorSpec spec{DType::u8, Shape{static_cast<int64_t>(input_bytes)}};
    grant.task.inputs.push_back({message_of(spec), Digest{}, Bytes(input_bytes, number)});
    return grant;
}

Computed computed_of(uint8_t number) {
    Computed computed;
    computed.digests.push_back(Digest{});
    computed.digests[0].bytes.fill(number);
    computed.compute_us = number;
    return computed;
}

// What matters of an entry, as text to compare.
std::string text_of(const std::vector<JournalEntry>& entries) {
    std::string text;
    for (const JournalEntry& entry : entries)
        text +=
            fmt::format("{}:{}{}{}{} ", entry.grant.assignment[0], entry.deaths, entry.computed ? "c" : "",
                        entry.send_asked ? "s" : "", entry.ended ? "e:" + entry.ended->reason : "");
    return text;
}

std::string reopened(const fs::path& path) {
    std::vector<JournalEntry> open;
    const Journal journal(path, open);
    return text_of(open);
}

}  // namespace

class TestJournal : public QObject {
    Q_OBJECT
    QTemporaryDir folder_;
    fs::path path() const { return (folder_.path() + "/journal").toStdString(); }

  private slots:
    void init() { fs::remove(path()); }

    void what_was_recorded_is_there_after_a_restart() {
        {
            std::vector<JournalEntry> open;
            Journal journal(path(), open);
            QVERIFY(open.empty());
            for (const uint8_t number : {1, 2, 3, 4, 5}) journal.granted(grant_of(number));
            journal.started(id_of(1));
            journal.started(id_of(2));
            journal.computed(id_of(2), computed_of(2));
            journal.send_asked(id_of(2));
            journal.started(id_of(3));
            journal.halted(id_of(3));
            journal.ended(id_of(4), {ResultKind::handed_back, "why"});
            journal.closed(id_of(5));
        }
        QCOMPARE(reopened(path()), std::string("1:1 2:0cs 3:0 4:0e:why "));
        std::vector<JournalEntry> open;
        const Journal journal(path(), open);
        QCOMPARE(open[0].grant.key, grant_of(1).key);
        QCOMPARE(open[0].grant.task.inputs[0].bytes, grant_of(1).task.inputs[0].bytes);
        QCOMPARE(open[1].computed->digests, computed_of(2).digests);
    }

    void deaths_add_up_and_computing_anew_after_damage_forgets_the_outputs() {
        std::vector<JournalEntry> open;
        Journal journal(path(), open);
        journal.granted(grant_of(1));
        journal.started(id_of(1));
        QCOMPARE(reopened(path()), std::string("1:1 "));
        journal.started(id_of(1));
        QCOMPARE(reopened(path()), std::string("1:2 "));
        journal.computed(id_of(1), computed_of(1));
        journal.spoiled(id_of(1));
        QCOMPARE(reopened(path()), std::string("1:0 "));
    }

    // A kill leaves some prefix of the file: each must read as some prefix of the records.
    void a_kill_at_any_byte_loses_at_most_the_record_that_was_being_written() {
        std::vector<std::string> states{""};
        std::vector<uint64_t> sizes{0};
        {
            std::vector<JournalEntry> open;
            Journal journal(path(), open);
            const auto step = [&](auto write) {
                write();
                sizes.push_back(journal.size_bytes());
                states.push_back(reopened(path()));
            };
            step([&] { journal.granted(grant_of(1)); });
            step([&] { journal.granted(grant_of(2)); });
            step([&] { journal.started(id_of(1)); });
            step([&] { journal.computed(id_of(1), computed_of(1)); });
            step([&] { journal.ended(id_of(2), {ResultKind::failed, "broken"}); });
            step([&] { journal.closed(id_of(1)); });
        }
        const fs::path cut = path().string() + ".cut";
        for (uint64_t size = 0; size <= sizes.back(); ++size) {
            fs::copy_file(path(), cut, fs::copy_options::overwrite_existing);
            fs::resize_file(cut, size);
            const auto whole =
                static_cast<size_t>(std::upper_bound(sizes.begin(), sizes.end(), size) - sizes.begin()) - 1;
            QCOMPARE(reopened(cut), states[whole]);
            std::vector<JournalEntry> open;
            Journal journal(cut, open);  // and it goes on from there
            journal.granted(grant_of(9));
            QCOMPARE(reopened(cut), states[whole] + "9:0 ");
        }
    }

    void a_flipped_bit_ends_the_journal_there_and_crashes_nothing() {
        {
            std::vector<JournalEntry> open;
            Journal journal(path(), open);
            for (uint8_t number = 1; number <= 3; ++number) journal.granted(grant_of(number));
        }
        const fs::path damaged = path().string() + ".damaged";
        for (uint64_t offset = 0; offset < fs::file_size(path()); ++offset) {
            fs::copy_file(path(), damaged, fs::copy_options::overwrite_existing);
            std::byte byte{};
            {
                const File file = File::open_to_write(damaged);
                file.read_at(offset, std::span(&byte, 1));
                byte ^= std::byte{4};
                file.write_at(offset, std::span(&byte, 1));
            }
            const std::string found = reopened(damaged);
            QVERIFY2(found == "" || found == "1:0 " || found == "1:0 2:0 ", found.c_str());
        }
    }

    void a_long_life_does_not_make_it_grow() {
        std::vector<JournalEntry> open;
        Journal journal(path(), open);
        journal.granted(grant_of(200));
        journal.started(id_of(200));
        uint64_t largest = 0;
        for (int round = 0; round < 600; ++round) {
            const auto number = static_cast<uint8_t>(round % 100);
            journal.granted(grant_of(number, 30'000));
            journal.computed(id_of(number), computed_of(number));
            journal.closed(id_of(number));
            largest = std::max(largest, fs::file_size(path()));
        }
        QVERIFY2(largest < 2 << 20, qPrintable(QString::number(largest)));
        QCOMPARE(reopened(path()), std::string("200:1 "));
    }

    void a_torn_end_that_cannot_be_cut_off_is_an_error_of_the_disk() {
        {
            std::vector<JournalEntry> open;
            Journal(path(), open).granted(grant_of(1));
        }
        std::ofstream(path(), std::ios::app) << "torn";
        refuses_to_cut = true;
        std::vector<JournalEntry> open;
        const ErrorKind kind = kind_of_error_of([&] { Journal(path(), open); });
        refuses_to_cut = false;
        QCOMPARE(kind, ErrorKind::io);
        QCOMPARE(reopened(path()), std::string("1:0 "));
    }

    void a_full_disk_leaves_the_journal_as_it_was() {
        std::vector<JournalEntry> open;
        Journal journal(path(), open);
        journal.granted(grant_of(1));
        rlimit before{};
        getrlimit(RLIMIT_FSIZE, &before);
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit tight{journal.size_bytes() + 100, before.rlim_max};
        setrlimit(RLIMIT_FSIZE, &tight);
        const ErrorKind kind = kind_of_error_of([&] { journal.granted(grant_of(2, 10'000)); });
        const std::string meanwhile = reopened(path());
        journal.started(id_of(1));  // a short one still fits
        setrlimit(RLIMIT_FSIZE, &before);
        QCOMPARE(kind, ErrorKind::io);
        QCOMPARE(meanwhile, std::string("1:0 "));
        journal.granted(grant_of(3));
        QCOMPARE(reopened(path()), std::string("1:1 3:0 "));
    }
};

QTEST_APPLESS_MAIN(TestJournal)
#include "test_journal.moc"
