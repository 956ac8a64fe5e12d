// A worker in the test's own process: its directory, its log, its one device with a TestEngine.
#pragma once

#include <QTemporaryDir>
#include <QtTest>
#include <mutex>

#include "app/worker/worker.hpp"
#include "tests/unit/worker/fake_lab.hpp"
#include "tests/unit/worker/test_engine.hpp"

namespace goblin::test {

// Inputs of one or two leaves, which travel as blobs…
inline Tensor large_a() {
    return numbers({620, 640}, 1);
}
inline Tensor large_b() {
    return numbers({640, 620}, 2);
}
// … of four leaves each …
inline Tensor wide(int seed) {
    return numbers({4, 262'144}, seed);
}
inline Tensor tall(int seed) {
    return numbers({262'144, 4}, seed);
}
// … and of a few bytes.
inline Tensor small_a() {
    return numbers({4, 4}, 3);
}
inline Tensor small_b() {
    return numbers({4, 4}, 4);
}

class WorkerBench {
  public:
    WorkerBench() : mood(std::make_shared<EngineMood>()) {}
    ~WorkerBench() { end(); }

    std::filesystem::path directory() const { return folder_.path().toStdString(); }
    std::filesystem::path lab_folder(const FakeLab& lab) const {
        return directory() / "labs" / Digest{lab.info.key}.hex();
    }

    void start(std::vector<InvitationLink> links) {
        settings.links = std::move(links);
        exit_code.reset();
        opened_ = std::make_unique<worker::WorkerDirectory>(directory(), "the test's machine");
        DeviceOffer offer;
        offer.kind = "cpu";
        offer.name = "a processor of a test";
        offer.speed_flops = 1'000'000'000;
        offer.memory_bytes = memory_bytes;
        std::vector<std::unique_ptr<worker::Device>> devices;
        devices.push_back(
            std::make_unique<worker::Device>(std::make_unique<TestEngine>(mood), offer, memory_bytes));
        running_ = std::make_unique<worker::Worker>(*opened_, settings, std::move(devices), log_,
                                                    [this](int code) { exit_code = code; });
    }
    worker::Worker& running() { return *running_; }
    worker::LabSession& session(size_t index = 0) { return *running_->sessions().at(index); }

    // As after kill -9: what is in memory is lost, the files stay as they are at this moment.
    void die() {
        const std::filesystem::path files = directory();
        const std::filesystem::path kept = files.string() + ".kept";
        std::filesystem::copy(files, kept, std::filesystem::copy_options::recursive);
        end();
        std::filesystem::remove_all(files);
        std::filesystem::rename(kept, files);
    }
    void end() {
        running_.reset();
        opened_.reset();
    }

    bool logged(const std::string& text) const {
        const std::lock_guard lock(mutex_);
        return std::any_of(lines_.begin(), lines_.end(),
                           [&](const std::string& line) { return line.find(text) != std::string::npos; });
    }
    QString log_text() const {
        const std::lock_guard lock(mutex_);
        QString text;
        for (const std::string& line : lines_) text += QString::fromStdString(line);
        return text;
    }

    worker::WorkerSettings settings;
    uint64_t memory_bytes = uint64_t{1} << 30;
    std::shared_ptr<EngineMood> mood;
    std::optional<int> exit_code;

  private:
    QTemporaryDir folder_;
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
    worker::Log log_{worker::LogLevel::debug,
                     [this](std::string_view line) {
                         const std::lock_guard lock(mutex_);
                         lines_.emplace_back(line);
                     },
                     [] { return std::chrono::system_clock::now(); }};
    std::unique_ptr<worker::WorkerDirectory> opened_;
    std::unique_ptr<worker::Worker> running_;
};

}  // namespace goblin::test

// Waits for the condition; shows the worker's log when it doesn't come true.
#define EVENTUALLY(bench, condition)                                                             \
    do {                                                                                         \
        QElapsedTimer waiting;                                                                   \
        waiting.start();                                                                         \
        while (!(condition) && waiting.elapsed() < 20'000) QTest::qWait(5);                      \
        QVERIFY2((condition),                                                                    \
                 qPrintable(QString("not within 20 s: " #condition "\n") + (bench).log_text())); \
    } while (false)
