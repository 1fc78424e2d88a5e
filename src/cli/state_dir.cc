#include "cli/state_dir.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"

namespace hearth::cli {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The folder need not exist.
std::string make_absolute(const std::string& path) {
  std::string text = std::filesystem::absolute(path).lexically_normal();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

}  // namespace

std::string choose_state_dir(const StateDirSources& sources) {
  if (!sources.flag.empty()) return make_absolute(sources.flag);
  if (!sources.variable.empty()) return make_absolute(sources.variable);
  if (sources.uid == 0) return "/var/lib/hearth";
  // The XDG base directory specification tells to ignore relative paths.
  if (sources.xdg_state_home.starts_with('/'))
    return make_absolute(sources.xdg_state_home + "/hearth");
  if (sources.home.starts_with('/')) return make_absolute(sources.home + "/.local/state/hearth");
  fail(Code::invalid,
       "there is no HOME to keep the state in; name a folder with --state-dir or HEARTH_STATE_DIR");
}

std::string find_state_dir(const std::string& flag) {
  return choose_state_dir({.flag = flag,
                           .variable = variable("HEARTH_STATE_DIR"),
                           .xdg_state_home = variable("XDG_STATE_HOME"),
                           .home = variable("HOME"),
                           .uid = ::geteuid()});
}

}  // namespace hearth::cli
