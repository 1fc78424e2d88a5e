// Who is measured, and what each can be asked to do.
//
// A subject says how it does things; the page decides when, how often and in which order.
// Everything throws Error for what this machine does not allow, which is then reported as skipped.
#pragma once

#include <sys/types.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace hearth::bench {

class Workshop;

// Something that is done again and again. What it needs is there when it has been made, and gone
// with this object. For one thread.
class Work {
 public:
  virtual ~Work() = default;
  // Does it once: the time it took in microseconds, or what the case is about.
  virtual double do_once() = 0;
  // Waits until what do_once() has put off is done too.
  virtual void recover() {}
};

// Sandboxes in which nothing happens, gone with this object.
class IdleSandboxes {
 public:
  virtual ~IdleSandboxes() = default;
  virtual void add(unsigned count) = 0;
  // Processes such that theirs, and those of all below, is the memory.
  virtual std::vector<pid_t> roots() const = 0;
};

class Subject {
 public:
  virtual ~Subject() = default;

  // The whole life of a sandbox: create, run the program once, destroy until nothing is left.
  virtual std::unique_ptr<Work> make_cycles() { not_offered(); }
  // The command that is a whole life, with a name of its own each time.
  virtual std::vector<std::string> cycle_words() { not_offered(); }
  // The program in a sandbox that lives on, until its end is known.
  virtual std::unique_ptr<Work> make_execs() { not_offered(); }
  // A sandbox with kPausedProcesses processes stands still and goes on.
  virtual std::unique_ptr<Work> make_pauses() { not_offered(); }
  // kFilesAtOnce small files; the figure is files per second.
  virtual std::unique_ptr<Work> make_file_writes() { not_offered(); }
  virtual std::unique_ptr<IdleSandboxes> make_idle_sandboxes() { not_offered(); }

  // The version, as people know it.
  virtual std::string version() const { return ""; }

 private:
  [[noreturn]] static void not_offered() { fail(Code::invalid, "it has no such thing"); }
};

inline constexpr unsigned kPausedProcesses = 10;
inline constexpr unsigned kFilesAtOnce = 1000;

// A subject by name, before it is known whether this machine has it.
struct Kind {
  std::string_view name;
  std::string_view what;      // for people
  bool cold_cycle = false;    // the cases it takes part in
  bool pooled_cycle = false;  // with those that have sandboxes made ahead
  bool exec_live = false;     //
  bool sustained = false;     //
  bool idle = false;          //
  bool pause_resume = false;  //
  bool small_files = false;   //
  // `workshop` must outlive the subject. Throws Error with the reason when it cannot be had here.
  std::unique_ptr<Subject> (*make)(const Workshop& workshop) = nullptr;
};

// In the order of the tables.
std::span<const Kind> all_kinds();

std::unique_ptr<Subject> make_hearth(const Workshop& workshop);
std::unique_ptr<Subject> make_hearth_pooled(const Workshop& workshop);
std::unique_ptr<Subject> make_hearth_cli(const Workshop& workshop);
std::unique_ptr<Subject> make_bubblewrap(const Workshop& workshop);
std::unique_ptr<Subject> make_crun(const Workshop& workshop);
std::unique_ptr<Subject> make_runc(const Workshop& workshop);
std::unique_ptr<Subject> make_nsenter(const Workshop& workshop);
std::unique_ptr<Subject> make_fork_exec(const Workshop& workshop);
std::unique_ptr<Subject> make_native(const Workshop& workshop);
std::unique_ptr<Subject> make_native_memory(const Workshop& workshop);

}  // namespace hearth::bench
