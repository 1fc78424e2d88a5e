// What the runtime writes down about a sandbox, so that its next life can find it again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "runtime/runtime.h"

namespace hearth::runtime {

// Its file, in the sandbox's folder.
inline constexpr const char* kRecord = "record";

struct Record {
  SandboxSpec spec;
  Time created;
  std::int32_t pid = 0;
  std::uint64_t start_time = 0;     // of pid 1; together they name one process until reboot
  std::string boot_id;              // of the machine: after a reboot a record means nothing
  std::string unit;                 // what its folder and its cgroup are called
  std::uint32_t id_slot = 0;        // which range of user ids
  std::string host_folder;          // of image 'host', if it stands on that
  std::vector<std::string> layers;  // of the store, that it stands on
  std::vector<std::string> default_command;  // what its image would run
  bool configured = false;                   // it is somebody's, or being made so
  std::string berth;  // which it shares with those whose record says the same
  bool has_network = false;
  std::uint32_t network_slot = 0;
  std::string address;
  std::uint64_t disk_device = 0;  // of its own disk, see disks.h; 0: none
};

std::string encode(const Record& record);
Record parse_record(std::string_view bytes);

// The kernel's name for this run of the machine.
std::string read_boot_id();

}  // namespace hearth::runtime
