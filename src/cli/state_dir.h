// Where an engine keeps its things, and where its clients look for it.
#pragma once

#include <sys/types.h>

#include <string>

namespace hearth::cli {

struct StateDirSources {
  std::string flag;            // --state-dir
  std::string variable;        // HEARTH_STATE_DIR
  std::string xdg_state_home;  // XDG_STATE_HOME
  std::string home;            // HOME
  uid_t uid = 0;
};

// The first of: the flag, the variable, /var/lib/hearth for root, the user's own state folder.
// Absolute and without a slash at the end. Throws Error(invalid) when there is nothing to go by.
std::string choose_state_dir(const StateDirSources& sources);

// The same, for this process.
std::string find_state_dir(const std::string& flag);

}  // namespace hearth::cli
