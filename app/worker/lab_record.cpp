// Reads and writes lab.json.
#include "app/worker/lab_record.hpp"

#include <QJsonDocument>
#include <QJsonObject>

#include "app/worker/private_file.hpp"
#include "core/error.hpp"
#include "core/work/hex.hpp"

namespace goblin::worker {

namespace fs = std::filesystem;

namespace {

constexpr const char* file_name = "lab.json";
constexpr uint64_t file_limit_bytes = 64u << 10;

QString hex_of(std::span<const uint8_t> bytes) {
    return QString::fromStdString(to_hex(bytes));
}

}  // namespace

std::optional<LabRecord> load_lab_record(const fs::path& lab_folder, const Digest& lab_key) {
    const auto bytes = read_private_file(lab_folder / file_name, file_limit_bytes);
    if (!bytes) return std::nullopt;
    const QJsonDocument document = QJsonDocument::fromJson(
        QByteArray(reinterpret_cast<const char*>(bytes->data()), static_cast<qsizetype>(bytes->size())));
    const QJsonObject object = document.object();
    const auto text = [&](const char* name) {
        return object.value(QLatin1String(name)).toString().toStdString();
    };
    LabRecord record;
    record.address.host = text("host");
    const int port = object.value(QLatin1String("port")).toInt();
    record.address.port = static_cast<uint16_t>(port);
    record.address.key = lab_key;
    record.name = text("name");
    record.computes = text("computes");
    record.contact = text("contact");
    record.joined_by = Digest::from_hex(text("joined_by"));
    Credential credential{};
    if (from_hex(text("credential"), credential)) record.credential = credential;
    if (record.address.host.empty() || port < 1 || port > 65'535)
        throw Error(ErrorKind::input,
                    "expected a lab's host and port in {}, found something else; join again with a new link",
                    (lab_folder / file_name).string());
    return record;
}

void save_lab_record(const fs::path& lab_folder, const LabRecord& record) {
    QJsonObject object;
    const auto set = [&](const char* name, const std::string& value) {
        object.insert(QLatin1String(name), QString::fromStdString(value));
    };
    set("host", record.address.host);
    object.insert(QLatin1String("port"), record.address.port);
    set("name", record.name);
    set("computes", record.computes);
    set("contact", record.contact);
    if (record.credential) object.insert(QLatin1String("credential"), hex_of(*record.credential));
    if (record.joined_by) object.insert(QLatin1String("joined_by"), hex_of(record.joined_by->bytes));
    const QByteArray text = QJsonDocument(object).toJson();
    make_private_folder(lab_folder);
    write_private_file(lab_folder / file_name, {reinterpret_cast<const uint8_t*>(text.constData()),
                                                static_cast<size_t>(text.size())});
}

}  // namespace goblin::worker
