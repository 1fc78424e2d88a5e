// Who is measured, and what each can be asked to do.
//
// A subject says how it does three things; the page decides when, how often and in which order.
// Everything throws Error for what this machine does not allow, which is then reported as skipped.
#pragma once

#include <sys/types.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "bench/interleave.h"

namespace hearth::bench {

class Workshop;

// Whole lives of sandboxes, one after the other: create, run the program once, destroy. Each worker
// thread has its own.
class Lives {
 public:
  virtual ~Lives() = default;
  virtual Turn live_once() = 0;
};

// A sandbox that runs, gone with this object.
class LiveSandbox {
 public:
  virtual ~LiveSandbox() = default;
  // Runs the program in it, to its end. Microseconds.
  virtual double time_exec() = 0;
};

// Sandboxes in which nothing happens, gone with this object.
class IdleSandboxes {
 public:
  virtual ~IdleSandboxes() = default;
  // The topmost process of each; theirs are all the processes below.
  virtual std::vector<pid_t> pids() const = 0;
};

class Subject {
 public:
  virtual ~Subject() = default;

  virtual std::unique_ptr<Lives> make_lives() { not_offered(); }
  virtual std::unique_ptr<LiveSandbox> make_live_sandbox() { not_offered(); }
  virtual std::unique_ptr<IdleSandboxes> make_idle_sandboxes(unsigned /*count*/) { not_offered(); }

  // The version, as people know it.
  virtual std::string version() const { return ""; }

 private:
  [[noreturn]] static void not_offered() { fail(Code::invalid, "it has no such thing"); }
};

// A subject by name, before it is known whether this machine has it.
struct Kind {
  std::string_view name;
  std::string_view what;  // for people
  bool lives = false;     // which of the three it offers
  bool execs = false;
  bool idles = false;
  // `workshop` must outlive the subject. Throws Error with the reason when it cannot be had here.
  std::unique_ptr<Subject> (*make)(const Workshop& workshop) = nullptr;
};

// In the order of the tables.
std::span<const Kind> all_kinds();

std::unique_ptr<Subject> make_hearth(const Workshop& workshop);
std::unique_ptr<Subject> make_hearth_cli(const Workshop& workshop);
std::unique_ptr<Subject> make_bubblewrap(const Workshop& workshop);
std::unique_ptr<Subject> make_crun(const Workshop& workshop);
std::unique_ptr<Subject> make_runc(const Workshop& workshop);
std::unique_ptr<Subject> make_nsenter(const Workshop& workshop);
std::unique_ptr<Subject> make_fork_exec(const Workshop& workshop);

}  // namespace hearth::bench
