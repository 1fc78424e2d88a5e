// What a sandbox that was made ahead of time is told when it becomes somebody's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/wire.h"

namespace hearth::guest {

struct ConfiguredFile {
  std::string path;  // absolute; folders on the way are made
  std::string content;
  std::uint32_t mode = 0400;
  std::string user;  // who owns it; empty: who commands run as
};

struct Configuration {
  std::vector<std::string> environment;  // NAME=value, over what the sandbox has
  std::string user;                      // empty: as before
  std::string directory;                 // empty: as before
  std::string token;                     // that surfaces ask for; empty: as before
  bool drops_token = false;              // they ask for none any more
  std::string hosts;                     // text of /etc/hosts; empty: as before
  std::string resolv_conf;               // the same for /etc/resolv.conf
  std::vector<ConfiguredFile> files;     // secrets and the like; no link is followed at their end
};

void put(wire::Writer& out, const Configuration& configuration);
Configuration read_configuration(wire::Reader& in);

}  // namespace hearth::guest
