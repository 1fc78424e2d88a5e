#include "runtime/birth.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstring>
#include <vector>

#include "base/error.h"
#include "guest/boot.h"
#include "init/airlock.h"
#include "linux/capabilities.h"
#include "linux/clone.h"
#include "linux/mounts.h"
#include "linux/sealed_memfd.h"
#include "runtime/root_plan.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;

// A machine so busy that a guest takes longer is better served by an honest failure.
constexpr Duration kPatience = 20s;

constexpr std::uint64_t kNamespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
                                      CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

std::vector<linux::Fd> clone_layers(const std::vector<std::string>& paths, int mapping_fd) {
  std::vector<linux::Fd> mounts;
  for (const std::string& path : paths) {
    mounts.push_back(linux::clone_mount(path));
    linux::set_mount_idmap(mounts.back().get(), mapping_fd);
  }
  return mounts;
}

std::vector<int> borrow(const std::vector<linux::Fd>& fds) {
  std::vector<int> numbers;
  for (const linux::Fd& fd : fds) numbers.push_back(fd.get());
  return numbers;
}

linux::Fd make_config(const BirthRequest& request, std::size_t join_count) {
  guest::BootConfig config;
  config.hostname = request.spec.id;
  config.environment = request.spec.environment;
  config.user = request.spec.user;
  config.capabilities = linux::default_capabilities().bits();
  config.seccomp_filter = request.seccomp_filter;
  config.join_count = static_cast<std::uint32_t>(join_count);
  // Born into the v2 cgroup already; a v1 one has to be joined.
  config.join_at_start = static_cast<std::uint32_t>(request.cgroup.v1_count());
  return linux::make_sealed_memfd("boot-config", encode(config));
}

// What the child or its guest says first, or why it says nothing.
void wait_until_ready(linux::Channel& boot, const init::Airlock& airlock) {
  // The airlock writes a bare Failure: it cannot frame a message, so neither is one read here.
  char answer[4096];
  while (true) {
    const ssize_t got = ::recv(boot.fd(), answer, sizeof answer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN)
      fail(Code::timeout, "the sandbox did not come up within {} s", kPatience / 1s);
    if (got < 0) throw_errno("wait for the sandbox");
    if (got == 0) fail(Code::internal, "the sandbox's guest ended before it was ready");
    if (got == sizeof(init::Failure)) {
      init::Failure failure;
      std::memcpy(&failure, answer, sizeof failure);
      fail(Code::internal, "{}", airlock.describe(failure));
    }
    // The first byte is the channel's own.
    const std::string_view text(answer + 1, static_cast<std::size_t>(got) - 1);
    if (text != guest::kReady) fail(Code::internal, "guest: {}", text);
    return;
  }
}

}  // namespace

Newborn::~Newborn() {
  if (!pidfd_) return;
  try {
    pidfd_.send_signal(SIGKILL);
    pidfd_.wait_for_end(Deadline::never());
    pidfd_.reap();
  } catch (const Error&) {
    // There is nothing left that could be done to it.
  }
}

linux::Pidfd Newborn::keep() {
  boot_.send(guest::kKeep);
  return std::move(pidfd_);
}

Newborn give_birth(const BirthRequest& request) {
  const auto layers = clone_layers(request.layers.root, request.mapping_fd);
  const auto usr_layers = clone_layers(request.layers.usr, request.mapping_fd);
  const auto join_fds = request.cgroup.open_join_files();
  const linux::Fd listen = linux::listen_at(request.folder_fd, kGuestSocket);
  const linux::Fd config = make_config(request, join_fds.size());
  const linux::Fd null = linux::open_file("/dev/null", O_RDWR);
  auto [ours, theirs] = linux::Channel::make_pair();
  const timeval patience{.tv_sec = kPatience / 1s, .tv_usec = 0};
  if (::setsockopt(ours.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
    throw_errno("limit the wait for a sandbox");
  }

  init::Plan plan;
  plan.steps = plan_root({.layer_fds = borrow(layers),
                          .usr_layer_fds = borrow(usr_layers),
                          .disk_bytes = request.spec.limits.disk_bytes});
  plan.program_fd = request.guest_program_fd;
  plan.command = {"hearth-guest"};
  plan.boot_fd = theirs.fd();
  plan.parent_fd = ours.fd();
  plan.fds = {null.get(), null.get(), null.get(), listen.get(), config.get(), theirs.fd()};
  for (const linux::Fd& fd : join_fds) plan.fds.push_back(fd.get());

  init::Airlock airlock(std::move(plan));
  linux::ClonedChild child = linux::clone_child({.namespaces = kNamespaces,
                                                 .cgroup_fd = request.cgroup.v2_dir_fd(),
                                                 .run = &init::Airlock::enter,
                                                 .argument = &airlock});
  // The child runs in our memory: what it uses must stay until it is dead or has executed its
  // program. Newborn sees to the first, being destroyed before everything above.
  const pid_t pid = child.pid();
  Newborn newborn(pid, std::move(child).leave_it(), std::move(ours));
  theirs = linux::Channel();
  linux::write_id_maps(pid, request.ids);
  if (::send(newborn.boot().fd(), "g", 1, MSG_NOSIGNAL) != 1) throw_errno("let the sandbox begin");
  wait_until_ready(newborn.boot(), airlock);
  return newborn;
}

}  // namespace hearth::runtime
