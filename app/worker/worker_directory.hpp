// The worker's directory: one volunteer and one computer, in the hands of one process at a time.
//
//   seed       the volunteer's secret, from which its key for each lab is derived
//   computer   drawn once; what a lab knows this computer by is derived from it (see core/work/identity.hpp)
//   machine    a mark of the machine and folder, to notice a copy
//   lock       held by the running worker
//   labs/KEY/  what belongs to one lab (see lab_record.hpp, journal.hpp)
#pragma once

#include <filesystem>
#include <vector>

#include "core/work/identity.hpp"

namespace goblin::worker {

using ComputerId = FixedBytes<16>;

class WorkerDirectory {
  public:
    // Makes what is missing. Throws ErrorKind::denied when another worker holds the directory, ErrorKind::io,
    // ErrorKind::input for a damaged file. `machine_id` is what tells this machine from others.
    WorkerDirectory(std::filesystem::path path, std::string_view machine_id);
    ~WorkerDirectory();
    WorkerDirectory(const WorkerDirectory&) = delete;
    WorkerDirectory& operator=(const WorkerDirectory&) = delete;

    const std::filesystem::path& path() const { return path_; }
    const VolunteerSeed& seed() const { return seed_; }
    const ComputerId& computer() const { return computer_; }
    // True when the directory was last used on another machine or at another place: a copy, or moved.
    bool came_from_elsewhere() const { return came_from_elsewhere_; }

    std::filesystem::path lab_folder(const Digest& lab_key) const;
    // Labs that have a folder here, in the order of their keys. Throws ErrorKind::io.
    std::vector<Digest> labs() const;

  private:
    void take_lock();
    void check_machine(std::string_view machine_id);

    std::filesystem::path path_;
    VolunteerSeed seed_{};
    ComputerId computer_{};
    bool came_from_elsewhere_ = false;
    int lock_ = -1;
};

// /etc/machine-id; empty where there is none.
std::string this_machine_id();

}  // namespace goblin::worker
