// Runs tests/support/npy_fixtures.py, NumPy's side of the tests of .npy files.
#pragma once

#include <QFile>
#include <QProcess>
#include <QString>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

namespace goblin {

// What the script printed, empty when it succeeded.
inline QString run_npy_fixtures(const QString& command, const QString& folder) {
    QProcess process;
    process.setProcessChannelMode(QProcess::MergedChannels);
    process.start("python3",
                  {QStringLiteral(GOBLIN_SOURCE_DIR) + "/tests/support/npy_fixtures.py", command, folder});
    if (!process.waitForFinished(60'000)) return "python3: " + process.errorString();
    const QString output = QString::fromUtf8(process.readAll());
    return process.exitCode() == 0 ? QString() : output + QString(" (exit code %1)").arg(process.exitCode());
}

inline std::vector<std::byte> file_bytes(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) throw std::runtime_error("cannot open " + path.toStdString());
    const QByteArray contents = file.readAll();
    const auto bytes = std::as_bytes(std::span(contents.data(), static_cast<size_t>(contents.size())));
    return {bytes.begin(), bytes.end()};
}

inline void write_file(const QString& path, std::span<const std::byte> bytes) {
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly)) throw std::runtime_error("cannot create " + path.toStdString());
    const auto size = static_cast<qint64>(bytes.size());
    if (file.write(reinterpret_cast<const char*>(bytes.data()), size) != size)
        throw std::runtime_error("cannot write " + path.toStdString());
}

}  // namespace goblin
