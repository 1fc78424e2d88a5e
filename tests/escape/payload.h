// A program that tries to get out of the sandbox it is run in, one claim at a time:
//
//   escape-payload NAME [ARGUMENT...]
//
// It ends with 0 when it managed something it must not (a hole), with 1 when everything was
// refused, with 2 when this machine lacks what the attempt needs. It says on stdout what it tried.
//
// Static and plain, so that it runs in any sandbox, whatever the image.
#pragma once

#include <cerrno>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace hearth::escape {

using Arguments = std::vector<std::string>;

// What an attempt found out.
class Findings {
 public:
  // Of a call that must fail: what it returned, negative with errno set if it did.
  void must_fail(const std::string& what, long result);
  void must_hold(const std::string& what, bool holds);
  // What would be a hole if we could do it, but nothing here to try it on.
  void lacks(const std::string& what);

  int exit_code() const;

 private:
  int tried_ = 0;
  int holes_ = 0;
};

struct Attempt {
  const char* name;
  void (*run)(Findings& findings, const Arguments& arguments);
};

// One list for each file of attempts.
std::span<const Attempt> mount_attempts();
std::span<const Attempt> process_attempts();
std::span<const Attempt> call_attempts();
std::span<const Attempt> file_attempts();
std::span<const Attempt> neighbour_attempts();
std::span<const Attempt> network_attempts();

// Runs it in a process of its own, which may die: true when it ended with what `run` returned 0
// for.
bool managed_in_child(const std::function<int()>& run);

// Everything below a folder, links not followed.
void walk(const std::string& folder, const std::function<void(const std::string& path)>& visit);

std::string read_all(const std::string& path);
std::string read_link(const std::string& path);

}  // namespace hearth::escape
