// What the runtime tells a new guest, and how the two agree that it lives.
//
// The guest starts with these descriptors and nothing else:
//   3  listening socket of the guest protocol; its file lies outside, out of the sandbox's reach
//   4  BootConfig in a sealed memfd
//   5  boot channel (below)
//   6… cgroup.procs files of the limits that commands live under
//
//   guest ──kReady──▶ runtime      or the text of what went wrong
//   guest ◀─kKeep──── runtime      the sandbox is on record
//
// A guest whose boot channel closes before kKeep ends, and its sandbox with it: a runtime that dies
// half-way leaves nothing behind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::guest {

inline constexpr int kListenFd = 3;
inline constexpr int kConfigFd = 4;
inline constexpr int kBootFd = 5;
inline constexpr int kFirstJoinFd = 6;

inline constexpr std::string_view kReady = "ready";
inline constexpr std::string_view kKeep = "keep";

struct BootConfig {
  std::string hostname;
  std::vector<std::string> environment;  // NAME=value, for every command
  std::string user = "root";             // who commands run as unless they say otherwise
  std::uint64_t capabilities = 0;        // what the guest and everything inside keeps, as a mask
  std::string seccomp_filter;            // struct sock_filter, one after the other; empty: none
  std::uint32_t join_count = 0;          // how many cgroup.procs descriptors there are
  std::uint32_t join_at_start = 0;       // the first so many are joined by the first spawner too
};

std::string encode(const BootConfig& config);
BootConfig parse_boot_config(std::string_view bytes);

}  // namespace hearth::guest
