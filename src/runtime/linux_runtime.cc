#include "runtime/linux_runtime.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/on_failure.h"
#include "linux/files.h"
#include "linux/mounts.h"
#include "runtime/host_image.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;

void validate(const SandboxSpec& spec) {
  if (!is_label(spec.id)) {
    fail(Code::invalid, "'{}' is no sandbox id: 1 to 63 of a-z, 0-9 and '-', no '-' at either end",
         spec.id);
  }
  if (spec.image != "host") {
    fail(Code::not_found, "there is no image '{}'; there is 'host', this machine's own /usr",
         spec.image);
  }
  for (const std::string& entry : spec.environment) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos || entry.find('\0') != std::string::npos) {
      fail(Code::invalid, "environment: '{}' is not NAME=value", entry.substr(0, equals));
    }
  }
  constexpr std::uint64_t kLeastMemory = std::uint64_t{4} << 20;
  if (spec.limits.memory_bytes != 0 && spec.limits.memory_bytes < kLeastMemory) {
    fail(Code::invalid,
         "a memory limit of {} bytes is too small for any program; the least is 4 MiB",
         spec.limits.memory_bytes);
  }
  constexpr std::uint32_t kLeastPids = 4;
  if (spec.limits.pids != 0 && spec.limits.pids < kLeastPids) {
    fail(Code::invalid, "a limit of {} processes leaves none for commands; the least is {}",
         spec.limits.pids, kLeastPids);
  }
}

std::vector<linux::Fd> clone_layers(const std::vector<std::string>& paths, int mapping_fd) {
  std::vector<linux::Fd> mounts;
  for (const std::string& path : paths) {
    mounts.push_back(linux::clone_mount(path));
    linux::set_mount_idmap(mounts.back().get(), mapping_fd);
  }
  return mounts;
}

// Limits that a shell of the pool can be given after it was made.
bool can_be_given(const Limits& limits) {
  return limits.memory_bytes != 0 && limits.cpu_millis != 0 && limits.pids != 0;
}

bool same_cgroup_limits(const Limits& one, const Limits& other) {
  return one.memory_bytes == other.memory_bytes && one.cpu_millis == other.cpu_millis &&
         one.pids == other.pids;
}

[[noreturn]] void throw_unknown(const std::string& id) {
  fail(Code::not_found, "there is no sandbox '{}'", id);
}

}  // namespace

std::shared_ptr<LinuxRuntime::Entry> LinuxRuntime::find(const std::string& id) {
  return entries_.with([&](Entries& entries) {
    const auto found = entries.find(id);
    return found == entries.end() ? nullptr : found->second;
  });
}

std::shared_ptr<LinuxRuntime::Entry> LinuxRuntime::reserve(const std::string& id) {
  auto entry = std::make_shared<Entry>();
  const bool inserted =
      entries_.with([&](Entries& entries) { return entries.emplace(id, entry).second; });
  if (!inserted) fail(Code::already_exists, "there is a sandbox '{}' already", id);
  return entry;
}

Runtime::Created LinuxRuntime::create(const SandboxSpec& wanted) {
  SandboxSpec spec = wanted;
  if (spec.id.empty()) spec.id = new_sandbox_id();
  validate(spec);

  const auto entry = reserve(spec.id);
  const std::lock_guard lock(entry->mutex);
  entry->gone = true;  // until it is up
  OnFailure forget([&] { entries_.with([&](Entries& entries) { entries.erase(spec.id); }); });
  linux::Channel guest = bring_up(*entry, spec);
  forget.release();
  entry->gone = false;
  entry->watch_tag = watch(spec.id, entry->pidfd);
  return {.sandbox = describe(*entry), .guest = std::move(guest)};
}

linux::Channel LinuxRuntime::bring_up(Entry& entry, const SandboxSpec& spec) {
  pool_->note_request();
  Shell shell = obtain_shell(spec.limits);
  OnFailure unmake([&] { shells_.unmake(shell.unit, shell.id_slot, shell.pidfd); });
  linux::Channel guest = dress(shell, spec);

  Record& record = entry.record;
  record.spec = spec;
  record.created = std::chrono::system_clock::now();
  record.pid = shell.pid;
  record.start_time = linux::start_time_of(shell.pid).value_or(0);
  record.boot_id = boot_id_;
  record.unit = shell.unit;
  record.id_slot = shell.id_slot;
  record.image_folder = host_image_;
  // Not to be read before the guest has been told to stay: half a record is none.
  const linux::Fd file =
      linux::open_at(shell.folder.get(), kRecord, O_WRONLY | O_CREAT | O_EXCL, 0600);
  linux::write_all(file.get(), encode(record));
  shell.boot.send(guest::kKeep);
  entry.pidfd = std::move(shell.pidfd);
  entry.state = State::running;
  unmake.release();
  return guest;
}

Shell LinuxRuntime::obtain_shell(const Limits& limits) {
  cgroups_.require_controllers(cgroup_limits(limits));
  if (can_be_given(limits)) {
    if (auto shell = pool_->take()) {
      if (!same_cgroup_limits(shell->limits, limits))
        shell->cgroup.set_limits(cgroup_limits(limits));
      return std::move(*shell);
    }
  }
  return shells_.make(limits);
}

// Turns a shell into the sandbox that was asked for.
linux::Channel LinuxRuntime::dress(Shell& shell, const SandboxSpec& spec) {
  const int mapping = id_ranges_.mapping_fd(shell.id_slot);
  const ImageLayers layers =
      host_image_layers(fmt::format("/proc/self/fd/{}/{}", images_.get(), host_image_));
  std::vector<linux::Fd> mounts = clone_layers(layers.root, mapping);
  for (linux::Fd& layer : clone_layers(layers.usr, mapping)) mounts.push_back(std::move(layer));

  auto [ours, theirs] = linux::Channel::make_pair();
  guest::Assignment assignment;
  assignment.hostname = spec.id;
  assignment.environment = spec.environment;
  assignment.user = spec.user;
  assignment.disk_bytes = spec.limits.disk_bytes;
  assignment.layers = static_cast<std::uint32_t>(layers.root.size());
  assignment.usr_layers = static_cast<std::uint32_t>(layers.usr.size());
  assignment.client = true;
  std::vector<int> fds;
  for (const linux::Fd& mount : mounts) fds.push_back(mount.get());
  fds.push_back(theirs.fd());
  ShellMaker::assign(shell, assignment, fds);
  return std::move(ours);
}

linux::Channel LinuxRuntime::connect(const std::string& id) {
  const auto entry = find(id);
  if (!entry) throw_unknown(id);
  const std::lock_guard lock(entry->mutex);
  if (entry->gone) throw_unknown(id);
  if (entry->state != State::running) fail(Code::unavailable, "sandbox '{}' has exited", id);
  const linux::Fd folder =
      linux::open_at(sandboxes_.get(), entry->record.unit, O_PATH | O_DIRECTORY);
  return linux::connect_at(folder.get(), kGuestSocket);
}

void LinuxRuntime::destroy(const std::string& id) {
  const auto entry = find(id);
  if (!entry) return;
  const std::lock_guard lock(entry->mutex);
  if (entry->gone) return;
  end(*entry);
  entry->gone = true;
  entries_.with([&](Entries& entries) { entries.erase(id); });
}

void LinuxRuntime::end(Entry& entry) {
  pool_->note_request();
  shells_.unmake(entry.record.unit, entry.record.id_slot, entry.pidfd);
  entry.state = State::exited;
  // Closing the pidfd took it off the watch, mostly before the watcher has looked.
  watched_.with([&](auto& watched) { watched.erase(entry.watch_tag); });
}

// What is known without asking the kernel.
Sandbox LinuxRuntime::describe(const Entry& entry) {
  const Record& record = entry.record;
  Sandbox sandbox{.id = record.spec.id,
                  .state = entry.state,
                  .image = record.spec.image,
                  .created = record.created,
                  .pid = record.pid,
                  .limits = record.spec.limits};
  return sandbox;
}

Sandbox LinuxRuntime::describe_with_usage(const Entry& entry) const {
  Sandbox sandbox = describe(entry);
  const auto cgroup = cgroups_.find(entry.record.unit);
  if (!cgroup) return sandbox;
  const linux::CgroupUsage usage = cgroup->usage();
  sandbox.usage = {.memory_bytes = usage.memory_bytes,
                   .memory_peak_bytes = usage.memory_peak_bytes,
                   .cpu_microseconds = usage.cpu_usec,
                   .pids = usage.pids,
                   .oom_kills = usage.oom_kills};
  return sandbox;
}

Sandbox LinuxRuntime::get(const std::string& id) {
  const auto entry = find(id);
  if (!entry) throw_unknown(id);
  const std::lock_guard lock(entry->mutex);
  if (entry->gone) throw_unknown(id);
  return describe_with_usage(*entry);
}

std::vector<Sandbox> LinuxRuntime::list() {
  const Entries entries = entries_.with([](const Entries& all) { return all; });
  std::vector<Sandbox> sandboxes;
  for (const auto& [id, entry] : entries) {
    const std::lock_guard lock(entry->mutex);
    if (!entry->gone) sandboxes.push_back(describe_with_usage(*entry));
  }
  return sandboxes;
}

void LinuxRuntime::destroy_all() {
  pool_->drain();
  for (const Sandbox& sandbox : list()) destroy(sandbox.id);
  linux::remove_all_at(images_.get(), host_image_);
  cgroups_.remove_tree();
}

std::uint64_t LinuxRuntime::watch(const std::string& id, const linux::Pidfd& pidfd) {
  const std::uint64_t tag = watched_.with([&](auto& watched) {
    watched[next_tag_] = id;
    return next_tag_++;
  });
  epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = tag}};
  if (::epoll_ctl(ends_.get(), EPOLL_CTL_ADD, pidfd.fd(), &event) != 0)
    throw_errno("watch '{}'", id);
  return tag;
}

void LinuxRuntime::watch_for_ends(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::array<epoll_event, 16> events{};
    const int count = ::epoll_wait(ends_.get(), events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t tag = events[static_cast<std::size_t>(i)].data.u64;
      if (tag == 0) continue;  // the one that wakes us to stop
      handle_end(watched_.with([&](auto& watched) {
        const auto taken = watched.extract(tag);
        return taken ? taken.mapped() : std::string();
      }));
    }
  }
}

void LinuxRuntime::handle_end(const std::string& id) {
  const auto entry = find(id);
  if (!entry) return;
  const std::lock_guard lock(entry->mutex);
  // It may be another one of that name by now.
  if (entry->gone || entry->state != State::running) return;
  try {
    if (!entry->pidfd.wait_for_end(Deadline::after(0s))) return;
    entry->state = State::exited;
    log::warning("sandbox ended by itself", {{"id", id}});
  } catch (const Error& error) {
    log::error("a sandbox seemed to end by itself", {{"id", id}, {"error", error.what()}});
  }
}

}  // namespace hearth::runtime
