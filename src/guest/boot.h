// How a guest comes into the world, and how it and the runtime agree that it lives.
//
//   runtime ──ShellOrder──▶ nursery      a process that keeps the guest's program warm in memory
//                              │ clone into seven namespaces
//           ◀──its pid─────────┘
//                            shell       what every sandbox has: namespaces, /proc, /sys, /dev,
//           ◀──kReady──────────┤         limits; not yet a file system
//           ──Assignment────▶  │         image, volumes, name, user: now it is a sandbox
//           ◀──kAssigned───────┤         or the text of what went wrong, instead of either
//           ──kKeep─────────▶ guest      the sandbox is on record
//
// From the order's boot channel on nobody but runtime and shell take part. A shell whose boot
// channel closes before kKeep ends, and everything of it: a runtime that dies half-way leaves
// nothing behind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "guest/process_rights.h"
#include "guest/surfaces.h"
#include "linux/namespaces.h"
#include "linux/resource_limits.h"

namespace hearth::guest {

inline constexpr std::string_view kReady = "ready";
inline constexpr std::string_view kAssigned = "assigned";
inline constexpr std::string_view kKeep = "keep";

// The first message to a nursery.
struct NurseryConfig {
  // struct sock_filter, one after the other. The first is installed once, in the nursery, and
  // inherited: all that a sandbox may do, and what it takes to make one. The second closes the
  // door behind a shell that has its assignment.
  std::string common_filter;
  std::string closing_filter;
  std::uint64_t capabilities = 0;  // what the guest and everything inside keeps, as a mask
  // It was started in namespaces net, ipc and uts of a sandbox, which those born in it share.
  bool joined = false;
};

// Every other message to a nursery; answered with the pid in decimal and a pidfd (it is nobody's to
// reap, so that the pid alone might name a stranger), or the text of an error. With
// it come, in this order: the boot channel, the listening socket of the guest protocol,
// `join_count` files of cgroups to join, and the folders of v2 cgroups that the following two name.
struct ShellOrder {
  linux::IdRange ids;
  std::uint32_t join_count = 0;
  bool guest_cgroup = false;    // that the guest is born into
  bool command_cgroup = false;  // that commands are born into
};

// A mount that the runtime made, to be put somewhere in the sandbox. Folders and files that are
// missing on the way are made.
struct Attachment {
  std::string target;  // absolute; links are followed inside the sandbox
  bool folder = true;
};

// With it come: the layers of the root, topmost first; those of /usr where an image keeps it apart;
// a file system to write to, if `disk`; the attachments; a connection of whoever asked for the
// sandbox, if `client`.
struct Assignment {
  std::string hostname;                       // empty: it has one, being shared
  std::vector<std::string> environment;       // NAME=value, for every command
  std::string user = "root";                  // who commands run as unless they say otherwise
  std::string directory;                      // where they start; empty: the user's home
  std::uint64_t disk_bytes = 0;               // that may be written; 0: no limit of its own
  std::vector<std::uint32_t> cpus;            // that commands may use; empty: all
  std::vector<linux::ResourceLimit> ulimits;  // of each command
  ProcessRights rights;                       // of each command
  std::vector<std::string> sysctls;           // see sysctls.h
  std::uint32_t layers = 0;
  std::uint32_t usr_layers = 0;
  bool disk = false;            // not into memory
  bool read_only_root = false;  // once everything is in its place
  std::vector<Attachment> attachments;
  std::string hosts;                  // texts for /etc; empty: the image's own stays
  std::string resolv_conf;            //
  std::vector<SurfacePort> surfaces;  // that listen in the sandbox's network
  std::string token;                  // that they ask for; empty: none
  std::vector<std::string> sudoers;   // see sudo_door.h; empty: there is no sudo
  bool client = false;
};

std::string encode(const NurseryConfig& config);
NurseryConfig parse_nursery_config(std::string_view bytes);
std::string encode(const ShellOrder& order);
ShellOrder parse_shell_order(std::string_view bytes);
std::string encode(const Assignment& assignment);
Assignment parse_assignment(std::string_view bytes);

}  // namespace hearth::guest
