// The verbs for talking to what listens in a sandbox, and for handing one over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/verbs.h"

namespace hearth::cli {

struct ForwardedPort {
  std::uint16_t local = 0;  // on our loopback; 0: any free one
  std::uint16_t inside = 0;

  bool operator==(const ForwardedPort&) const = default;
};

struct ForwardOptions {
  std::string state_dir;
  std::string id;
  std::vector<ForwardedPort> ports;
};

struct PortsOptions {
  std::string state_dir;
  std::string id;
  bool follow = false;
  Format format = Format::table;
};

struct ConfigureOptions {
  std::string state_dir;
  std::string id;
  std::vector<std::string> environment;  // NAME=value
  std::string user;
  std::string directory;
  std::string hostname;
  std::string token_file;  // empty: none; "-": our input
  std::vector<SecretFile> secrets;
};

// "PORT" or "LOCAL:PORT". Throws Error(invalid).
ForwardedPort parse_forwarded_port(std::string_view text);

// "envd,code:1234"; "all". Throws Error(invalid).
std::vector<guest::SurfacePort> parse_surfaces(std::string_view flag,
                                               const std::vector<std::string>& words);

// What is in FILE, without the newline at its end. Throws Error, never with a word of it.
std::string read_token(const std::string& file);

int forward(const ForwardOptions& options);
int ports(const PortsOptions& options);
int configure(const ConfigureOptions& options);

}  // namespace hearth::cli
