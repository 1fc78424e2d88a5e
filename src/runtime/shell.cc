#include "runtime/shell.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/error.h"
#include "base/id.h"
#include "base/on_failure.h"
#include "linux/files.h"
#include "linux/resource_limits.h"
#include "runtime/limits.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;

constexpr Duration kBirthPatience = 20s;

// A killed PID 1 is gone when the kernel has taken down everything in its namespace.
constexpr Duration kEndPatience = 30s;

// A sandbox keeps nine descriptors, and its birth wants some more for a moment. Those who come for
// something else find some left, above all those who bring an end: an eighth of what we may have.
// The kernel gives out the lowest number that is free, so the newest tells how many there are.
void check_descriptors(int newest_fd) {
  constexpr std::uint64_t kMostKept = 1024;
  const std::uint64_t most = linux::own_limit(RLIMIT_NOFILE).soft;
  if (static_cast<std::uint64_t>(newest_fd) < most - std::min(most / 8, kMostKept)) return;
  fail(Code::exhausted,
       "the runtime may have no more than {} files open, which is too few for another sandbox",
       most);
}

linux::Message expect(linux::Channel& boot, std::string_view word) {
  auto message = boot.receive(Deadline::after(kBirthPatience));
  if (!message) fail(Code::internal, "the sandbox's guest ended before it was ready");
  if (message->bytes != word) fail(Code::internal, "{}", message->bytes);
  return std::move(*message);
}

}  // namespace

Shell ShellMaker::make(const Limits& limits, bool with_network) const {
  return make_any(nullptr, limits, with_network);
}

Shell ShellMaker::make_in(std::shared_ptr<Berth> berth, const Limits& limits) const {
  return make_any(std::move(berth), limits, /*with_network=*/false);
}

Shell ShellMaker::make_any(std::shared_ptr<Berth> berth, const Limits& limits,
                           bool with_network) const {
  Shell shell;
  shell.unit = "u" + random_hex(6);
  shell.limits = limits;
  if (berth) berth->join(shell.unit);
  shell.berth = std::move(berth);
  OnFailure leave([&] { leave_berth(shell.berth, shell.unit); });
  shell.id_slot = sources_.id_ranges.acquire();
  OnFailure free_slot([&] { sources_.id_ranges.release(shell.id_slot); });
  if (::mkdirat(sources_.sandboxes_fd, shell.unit.c_str(), 0700) != 0)
    throw_errno("make a folder for a sandbox");
  OnFailure remove_folder([&] { linux::remove_all_at(sources_.sandboxes_fd, shell.unit); });
  shell.folder = linux::open_at(sources_.sandboxes_fd, shell.unit, O_RDONLY | O_DIRECTORY);
  check_descriptors(shell.folder.get());
  shell.cgroup = sources_.cgroups.create(shell.unit, cgroup_limits(limits, sources_.disk_fd),
                                         ids_of_slot(shell.id_slot).first);
  OnFailure remove_cgroup([&] { sources_.cgroups.remove(shell.unit); });

  auto [ours, theirs] = linux::Channel::make_pair();
  linux::Forked newborn = give_birth(shell, theirs.fd());
  shell.pid = newborn.pid;
  shell.pidfd = std::move(newborn.pidfd);
  shell.boot = std::move(ours);
  OnFailure kill([&] {
    shell.pidfd.send_signal(SIGKILL);
    shell.pidfd.wait_for_end(Deadline::after(kEndPatience));
  });
  if (!shell.berth) shell.berth = std::make_shared<Berth>(shell.unit, shell.unit, shell.pid);
  if (with_network) {
    if (sources_.network == nullptr)
      fail(Code::unavailable, "this engine has no network for sandboxes");
    shell.berth->give_slot(sources_.network->attach(shell.berth->net_fd()));
  }
  kill.release();
  remove_cgroup.release();
  remove_folder.release();
  free_slot.release();
  leave.release();
  return shell;
}

linux::Forked ShellMaker::give_birth(const Shell& shell, int boot_fd) const {
  const std::vector<linux::Fd> join_files = shell.cgroup.open_join_files();
  const linux::Fd listen = linux::listen_at(shell.folder.get(), kGuestSocket);
  const guest::ShellOrder order{.ids = ids_of_slot(shell.id_slot),
                                .join_count = static_cast<std::uint32_t>(join_files.size()),
                                .guest_cgroup = shell.cgroup.serving_dir_fd() >= 0,
                                .command_cgroup = shell.cgroup.v2_limits()};
  std::vector<int> fds = {boot_fd, listen.get()};
  for (const linux::Fd& file : join_files) fds.push_back(file.get());
  if (order.guest_cgroup) fds.push_back(shell.cgroup.serving_dir_fd());
  if (order.command_cgroup) fds.push_back(shell.cgroup.v2_dir_fd());
  return shell.berth ? shell.berth->order(sources_.nurseries, order, fds)
                     : sources_.nurseries.order(order, fds);
}

void ShellMaker::leave_berth(const std::shared_ptr<Berth>& berth, const std::string& unit) const {
  if (!berth) return;
  linux::Fd net_namespace = berth->leave(unit);
  if (!net_namespace) return;
  sources_.partings.add(std::move(net_namespace));
  if (berth->slot() && sources_.network != nullptr) sources_.network->release(berth->slot()->index);
}

void ShellMaker::wait_until_ready(Shell& shell) {
  if (!shell.ready) expect(shell.boot, guest::kReady);
  shell.ready = true;
}

void ShellMaker::assign(Shell& shell, const guest::Assignment& assignment,
                        std::span<const int> fds) {
  shell.boot.send(encode(assignment), fds, Deadline::after(kBirthPatience));
  wait_until_ready(shell);
  linux::Message answer = expect(shell.boot, guest::kAssigned);
  if (!answer.fds.empty()) shell.stage = std::move(answer.fds.front());
}

ShellMaker::Remains ShellMaker::remains_of(const Shell& shell) {
  return {.unit = shell.unit, .id_slot = shell.id_slot, .berth = shell.berth};
}

void ShellMaker::unmake(const Remains& remains, linux::Pidfd& pidfd) const {
  const std::string& unit = remains.unit;
  if (pidfd) {
    pidfd.send_signal(SIGKILL);
    if (!pidfd.wait_for_end(Deadline::after(kEndPatience)))
      fail(Code::timeout, "a sandbox does not die (unit '{}')", unit);
    pidfd = linux::Pidfd();
  }
  sources_.cgroups.remove(unit);
  linux::remove_all_at(sources_.sandboxes_fd, unit);
  leave_berth(remains.berth, unit);
  sources_.id_ranges.release(remains.id_slot);
}

}  // namespace hearth::runtime
