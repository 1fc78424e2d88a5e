// What a command line says about a sandbox's network, mounts and limits.
//
// Every parse_x throws Error(invalid) that names the flag and says what would have been right.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "network/policy.h"
#include "runtime/runtime.h"

namespace hearth::cli {

// As written.
struct NetworkWords {
  std::string mode;  // empty: none was named
  std::vector<std::string> open;
  std::vector<std::string> allow;
  std::vector<std::string> deny;
  bool no_dns = false;
};

struct NetworkOptions {
  std::optional<network::Mode> mode;  // named, or implied by a list of what is allowed
  network::Policy rules;              // all of it but the mode

  bool operator==(const NetworkOptions&) const = default;
};

// `mode_flag` is what the mode is called there. Rules that could never matter are refused.
NetworkOptions parse_network(std::string_view mode_flag, const NetworkWords& words);

// For a new sandbox of an engine with or without a network: the world, unless something else was
// said. Whoever asked for a way out gets one or nothing: the runtime refuses what it does not have.
std::optional<network::Policy> choose_policy(const NetworkOptions& options,
                                             bool engine_has_network);

// "NAME:/target" is a volume, "/host/path:/target" a folder or file of this machine; ":ro" may
// follow.
runtime::MountSpec parse_volume(std::string_view flag, std::string_view text);

// "/target" or "/target:16m".
runtime::MountSpec parse_tmpfs(std::string_view flag, std::string_view text);

// A file whose content we read, for the sandbox alone.
struct SecretFile {
  std::string target;
  std::string path;  // "-": our input

  bool operator==(const SecretFile&) const = default;
};

// "/target=FILE".
SecretFile parse_secret(std::string_view flag, std::string_view text);

// Throws Error, never with a word of the content.
runtime::MountSpec read_secret(const SecretFile& secret);

// "memory" or "disk".
runtime::DiskPlace parse_disk_place(std::string_view flag, std::string_view text);

// "nofile=1024:4096" is a soft and a hard limit, "nofile=1024" both at once, "unlimited" is a
// number.
linux::ResourceLimit parse_ulimit(std::string_view flag, std::string_view text);

}  // namespace hearth::cli
