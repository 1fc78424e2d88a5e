// What somebody wrote behind `sudo`, and what it means: pure, without a process in sight.
//
// Options are those of sudo(8) that scripts use. What asks for a password, or is about one, is
// taken and means nothing: nobody here has one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guest/users.h"

namespace hearth::sudo {

enum class Mode : std::uint8_t {
  run,    // a command
  shell,  // -s: one of the caller's choice
  login,  // -i: the user's own, as if he had logged in
  list,   // -l: what the caller may
  check,  // -v: whether he may at all
  reset,  // -k, -K without a command: forget a password
  help,
  version,
};

struct Line {
  Mode mode = Mode::run;
  std::string user;       // -u, as it was written; empty: root, or the caller if there is a group
  std::string group;      // -g
  std::string directory;  // -D; empty: the caller's
  bool background = false;
  bool set_home = false;
  bool keep_all = false;                 // -E
  std::vector<std::string> kept;         // --preserve-env=LIST: names
  std::vector<std::string> assignments;  // NAME=value
  std::vector<std::string> command;
};

// Throws Error(invalid), in words for whoever wrote it.
Line parse_line(std::span<const std::string_view> words);

// Who asks.
struct Caller {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string name;
  std::vector<std::string> environment;  // NAME=value
};

// As the guest takes it: "name", "uid", either with ":group".
std::string target_of(const Line& line, const Caller& caller);

// The program and its arguments, of every mode that runs one.
std::vector<std::string> command_of(const Line& line, const Caller& caller,
                                    const guest::User& target);

// All of it. `program` is where the command was found.
std::vector<std::string> environment_of(const Line& line, const Caller& caller,
                                        const guest::User& target, const std::string& program,
                                        const std::vector<std::string>& command);

// Where commands are looked for, whatever the caller's own PATH says.
inline constexpr std::string_view kSecurePath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

extern const std::string_view kUsage;

}  // namespace hearth::sudo
