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
#include "runtime/birth.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;

constexpr const char* kRecord = "record";

// A killed PID 1 is gone when the kernel has taken down everything in its namespace.
constexpr Duration kEndPatience = 30s;

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

linux::CgroupLimits cgroup_limits(const Limits& limits) {
  return {
      .memory_bytes = limits.memory_bytes, .cpu_millis = limits.cpu_millis, .pids = limits.pids};
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
  bring_up(*entry, spec);
  forget.release();
  entry->gone = false;
  entry->watch_tag = watch(spec.id, entry->pidfd);

  const linux::Fd folder = linux::open_at(sandboxes_.get(), spec.id, O_PATH | O_DIRECTORY);
  return {.sandbox = describe(*entry), .guest = linux::connect_at(folder.get(), kGuestSocket)};
}

void LinuxRuntime::bring_up(Entry& entry, const SandboxSpec& spec) {
  const std::uint32_t slot = id_ranges_.acquire();
  OnFailure free_slot([&] { id_ranges_.release(slot); });
  if (::mkdirat(sandboxes_.get(), spec.id.c_str(), 0700) != 0)
    throw_errno("make a folder for '{}'", spec.id);
  OnFailure remove_folder([&] { linux::remove_all_at(sandboxes_.get(), spec.id); });
  const linux::Fd folder = linux::open_at(sandboxes_.get(), spec.id, O_RDONLY | O_DIRECTORY);
  const linux::Cgroup cgroup = cgroups_.create(spec.id, cgroup_limits(spec.limits));
  OnFailure remove_cgroup([&] { cgroups_.remove(spec.id); });

  const ImageLayers layers =
      host_image_layers(fmt::format("/proc/self/fd/{}/{}", images_.get(), host_image_));
  Newborn newborn = give_birth({.spec = spec,
                                .ids = ids_of_slot(slot),
                                .mapping_fd = id_ranges_.mapping_fd(slot),
                                .layers = layers,
                                .cgroup = cgroup,
                                .folder_fd = folder.get(),
                                .guest_program_fd = guest_program_.get(),
                                .seccomp_filter = seccomp_filter_});

  Record& record = entry.record;
  record.spec = spec;
  record.created = std::chrono::system_clock::now();
  record.pid = newborn.pid();
  record.start_time = linux::start_time_of(newborn.pid()).value_or(0);
  record.boot_id = boot_id_;
  record.id_slot = slot;
  record.image_folder = host_image_;
  linux::replace_file_at(folder.get(), kRecord, encode(record));
  entry.pidfd = newborn.keep();
  entry.state = State::running;

  remove_cgroup.release();
  remove_folder.release();
  free_slot.release();
  // Where v2 limits, the guest was born under the limits of its users' processes.
  if (cgroup.v1_count() == 0) cgroups_.move_out(record.pid);
}

linux::Channel LinuxRuntime::connect(const std::string& id) {
  const auto entry = find(id);
  if (!entry) throw_unknown(id);
  const std::lock_guard lock(entry->mutex);
  if (entry->gone) throw_unknown(id);
  if (entry->state != State::running) fail(Code::unavailable, "sandbox '{}' has exited", id);
  const linux::Fd folder = linux::open_at(sandboxes_.get(), id, O_PATH | O_DIRECTORY);
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
  if (entry.state == State::running) {
    entry.pidfd.send_signal(SIGKILL);
    if (!entry.pidfd.wait_for_end(Deadline::after(kEndPatience))) {
      fail(Code::timeout, "sandbox '{}' does not die", entry.record.spec.id);
    }
    entry.pidfd.reap();
    entry.state = State::exited;
  }
  erase_traces(entry.record);
  // Closing it takes it off the watch, mostly before the watcher has looked.
  watched_.with([&](auto& watched) { watched.erase(entry.watch_tag); });
  entry.pidfd = linux::Pidfd();
}

void LinuxRuntime::erase_traces(const Record& record) {
  const std::string& id = record.spec.id;
  cgroups_.remove(id);
  linux::remove_all_at(sandboxes_.get(), id);
  id_ranges_.release(record.id_slot);
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
  const auto cgroup = cgroups_.find(sandbox.id);
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
    entry->pidfd.reap();
    entry->state = State::exited;
    log::warning("sandbox ended by itself", {{"id", id}});
  } catch (const Error& error) {
    log::error("sandbox ended by itself, and it was not reaped",
               {{"id", id}, {"error", error.what()}});
  }
}

}  // namespace hearth::runtime
