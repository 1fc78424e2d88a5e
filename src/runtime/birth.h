// From a specification to a running guest: the steps that the kernel wants done in one breath.
#pragma once

#include <sys/types.h>

#include <string>

#include "linux/cgroup.h"
#include "linux/channel.h"
#include "linux/namespaces.h"
#include "linux/pidfd.h"
#include "runtime/host_image.h"
#include "runtime/runtime.h"

namespace hearth::runtime {

// All borrowed.
struct BirthRequest {
  const SandboxSpec& spec;
  linux::IdRange ids;
  int mapping_fd;  // user namespace with the same mapping, to show the layers' owners through
  const ImageLayers& layers;
  const linux::Cgroup& cgroup;
  int folder_fd;         // where the guest's socket is made
  int guest_program_fd;  // sealed
  const std::string& seccomp_filter;
};

inline constexpr const char* kGuestSocket = "guest.sock";

// A guest that is ready. Dies with this object unless keep() was called.
class Newborn {
 public:
  Newborn(pid_t pid, linux::Pidfd pidfd, linux::Channel boot)
      : pid_(pid), pidfd_(std::move(pidfd)), boot_(std::move(boot)) {}
  Newborn(Newborn&&) = default;
  Newborn& operator=(Newborn&&) = delete;
  Newborn(const Newborn&) = delete;
  Newborn& operator=(const Newborn&) = delete;
  ~Newborn();

  pid_t pid() const { return pid_; }
  linux::Channel& boot() { return boot_; }

  // From now on it lives without us.
  linux::Pidfd keep();

 private:
  pid_t pid_;
  linux::Pidfd pidfd_;
  linux::Channel boot_;
};

// Returns when the guest serves. Throws Error and leaves no process. The working folder must be an
// empty folder that everybody may enter (see init/airlock.h).
Newborn give_birth(const BirthRequest& request);

}  // namespace hearth::runtime
