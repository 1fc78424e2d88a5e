// One hearth-unpack process: started where it can see nothing but one folder, given a job, heard,
// killed.
//
// It is born in user, pid, mount, net, ipc, uts and cgroup namespaces of its own. The program then
// makes the job's destination its root folder and lets go of everything else before it reads a byte
// (unpack/confine.h). Throws Error.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "image/helper_birth_internal.h"
#include "image/unpack_job.h"
#include "linux/channel.h"
#include "linux/clone.h"
#include "linux/namespaces.h"

namespace hearth::image {

struct HelperRequest {
  std::string program;
  linux::IdRange ids;  // who it is outside
  int input_fd = -1;
  int target_fd = -1;  // as unpack_job.h says; a mount's owners must be mapped to `ids`
  const Job* job = nullptr;
};

// A child that does not outlive this object.
class DoomedChild {
 public:
  explicit DoomedChild(linux::ClonedChild child) : child_(std::move(child)) {}
  DoomedChild(const DoomedChild&) = delete;
  DoomedChild& operator=(const DoomedChild&) = delete;
  ~DoomedChild() { end(); }

  pid_t pid() const { return child_.pid(); }
  // Kills it if it still runs. Nothing when it was ended before.
  std::optional<linux::ExitStatus> end() noexcept;

 private:
  linux::ClonedChild child_;
};

class UnpackHelper {
 public:
  explicit UnpackHelper(const HelperRequest& request);

  // Readable when there is a report, or will never be one.
  int fd() const { return channel_.fd(); }

  // To be called when fd() is readable. Throws Error(internal) when it ended without a word.
  Report take_report();

 private:
  // What the child inherits and we need only until it is born.
  struct Materials {
    linux::Channel ours;
    linux::Channel theirs;
    linux::Fd program;
    linux::Fd null;
  };
  static Materials gather_materials(const HelperRequest& request);
  UnpackHelper(const HelperRequest& request, Materials materials);

  linux::Channel channel_;
  HelperBirth birth_;  // in use by the child until it executes its program
  DoomedChild child_;
};

// Waits until every helper has reported, or one of them a failure; fills `reports` in the same
// order (Report{} for who did not come to it). Throws timeout, and unavailable when the other end
// of the socket `caller_fd` hangs up (-1: nobody to watch).
void await_reports(std::span<UnpackHelper* const> helpers, std::span<Report> reports, int caller_fd,
                   Deadline deadline);

}  // namespace hearth::image
