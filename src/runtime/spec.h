// What a sandbox is asked to be. Plain data: it crosses process boundaries (spec_wire.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guest/process_rights.h"
#include "guest/surfaces.h"
#include "linux/resource_limits.h"
#include "network/policy.h"

namespace hearth::runtime {

// What may pass between a sandbox and the disk that the engine keeps its files on, each second. 0
// means no limit.
struct IoLimits {
  std::uint64_t read_bytes = 0;
  std::uint64_t write_bytes = 0;
  std::uint64_t read_ops = 0;
  std::uint64_t write_ops = 0;

  bool any() const { return *this != IoLimits{}; }
  bool operator==(const IoLimits&) const = default;
};

// Enforced on everything that runs in the sandbox, together. 0 means no limit.
struct Limits {
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;  // files in the writable layer count too
  std::uint32_t cpu_millis = 2000;                      // 1000 = one core
  std::uint32_t pids = 512;
  std::uint64_t disk_bytes = std::uint64_t{1} << 30;  // of the writable layer
  IoLimits io;

  bool operator==(const Limits&) const = default;
};

// Where a sandbox's writable layer is. Crosses process boundaries as a number: do not renumber.
enum class DiskPlace : std::uint8_t {
  memory = 1,  // quickly made; what is written counts as memory too
  disk = 2,    // in a file system of its own on the engine's disk, which is made with it
};
std::string_view to_string(DiskPlace place);

// Crosses process boundaries as a number: do not renumber.
enum class MountKind : std::uint8_t {
  volume = 1,  // `source` names it; made when it is not there; outlives the sandbox
  host = 2,    // `source` is a path of this machine, below one that the operator allowed
  memory = 3,  // a tmpfs of at most `bytes`
  file = 4,    // a read-only file with `content`: secrets, configuration; never on a disk
  tree = 5,    // a read-only folder with `files`, the same way
};

struct MountFile {
  std::string path;  // below the folder: "a/b"
  std::string content;
  std::uint32_t mode = 0444;

  bool operator==(const MountFile&) const = default;
};

// What becomes of the files of a volume that are not of the wanted group. Crosses process
// boundaries as a number: do not renumber.
enum class Regroup : std::uint8_t {
  never = 0,
  where_root_differs = 1,  // all of them, unless the volume's own folder is as it should be
  always = 2,              // all of them, unless somebody uses the volume at the moment
};

struct MountSpec {
  MountKind kind = MountKind::volume;
  std::string source;
  std::string target;  // absolute, inside
  bool read_only = false;
  std::uint64_t bytes = 0;  // also the size of a volume that this mount makes; 0: none of its own
  std::string content;
  std::vector<MountFile> files;
  bool changes = false;     // of a tree: Runtime::replace_files may put others there
  std::uint32_t group = 0;  // that files are given to; of volumes where `regroup` says so
  Regroup regroup = Regroup::never;
  // Of a volume: the folder in it that is mounted, made when it is not there. No link leads out.
  std::string sub_path;
  // Of a file; 0: 0444. Of a volume: what that folder's becomes while nothing is in it; 0: it
  // stays.
  std::uint32_t mode = 0;
};

// Of one sandbox: each takes time when it is made, and they all fit one message.
inline constexpr std::uint32_t kMaxMounts = 64;

// What is kept on disk of the output of detached commands: `files` of at most `bytes` each. 0
// files: nothing but what the guest remembers.
struct LogLimits {
  std::uint64_t bytes = std::uint64_t{10} << 20;
  std::uint32_t files = 3;

  bool operator==(const LogLimits&) const = default;
};

inline constexpr std::string_view kAddressMark = "%ADDRESS%";
inline constexpr std::string_view kHostnameMark = "%HOSTNAME%";

// Everything needed to start one sandbox.
struct SandboxSpec {
  std::string id;        // a label (base/id.h). Empty: one is made up
  std::string hostname;  // labels with dots between them, at most 64. Empty: the id
  // Another sandbox, running or exited: this one shares its network (address, rules), its host
  // name, System V and POSIX message queues, and nothing else. What is said here about host name
  // and network does not count then. Empty: it has its own.
  std::string joins;
  std::string image = "host";            // by name or id
  std::vector<std::string> environment;  // NAME=value, for every command, over the image's own
  std::string user;       // whom commands run as; empty: whom the image says, or root
  std::string directory;  // where commands start; empty: what the image says, or the user's home
  Limits limits;
  DiskPlace disk_on = DiskPlace::memory;
  // Nobody inside can write to the image's files: what is written goes to mounts and /dev/shm.
  bool read_only_root = false;
  // Of each process by itself, besides `limits`. The engine's own are the most that can be given.
  std::vector<linux::ResourceLimit> ulimits;
  guest::ProcessRights rights;  // of every command
  // NAME=value, of its namespaces; of no effect on one that joins another.
  std::vector<std::string> sysctls;
  // The text of /etc/hosts, with kAddressMark and kHostnameMark for what is its own. Empty: the
  // usual. A mount on that path counts before it.
  std::string hosts;
  std::optional<network::Policy> network;  // nothing: a loopback link and no other
  std::vector<MountSpec> mounts;
  std::vector<guest::SurfacePort> surfaces;  // that listen inside
  std::string token;                         // that they ask for; empty: none
  // By name, who may have commands run as anybody inside, with `sudo`; those that its files do not
  // list are passed over. Root may too. Empty: there is no sudo.
  std::vector<std::string> sudoers;
  LogLimits log;
  // Goes when the connection that asked for it closes: whoever is killed leaves nothing behind.
  bool ends_with_client = false;
};

}  // namespace hearth::runtime
