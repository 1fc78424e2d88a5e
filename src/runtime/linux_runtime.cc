#include "runtime/linux_runtime.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/on_failure.h"
#include "linux/block_device.h"
#include "linux/files.h"
#include "runtime/disks.h"
#include "runtime/host_image.h"
#include "runtime/limits.h"

namespace hearth::runtime {
namespace {

void validate(const SandboxSpec& spec) {
  if (!is_label(spec.id)) {
    fail(Code::invalid, "'{}' is no sandbox id: 1 to 63 of a-z, 0-9 and '-', no '-' at either end",
         spec.id);
  }
  if (!spec.hostname.empty()) check_hostname(spec.hostname);
  if (!spec.joins.empty() && (!is_label(spec.joins) || spec.joins == spec.id))
    fail(Code::invalid, "'{}' is no sandbox that another could join", spec.joins);
  for (const std::string& entry : spec.environment) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos || entry.find('\0') != std::string::npos) {
      fail(Code::invalid, "environment: '{}' is not NAME=value", entry.substr(0, equals));
    }
  }
  check(spec.limits);
  check(spec.ulimits);
  if (spec.disk_on == DiskPlace::disk) check_disk_size(spec.limits.disk_bytes);
  if (spec.network) network::check(*spec.network);
  check(spec.mounts);
  check(spec.log);
}

// Of a file system; nothing where the kernel does not say.
std::uint64_t used_bytes(int fd) {
  struct statvfs status{};
  if (::fstatvfs(fd, &status) != 0) return 0;
  return static_cast<std::uint64_t>(status.f_blocks - status.f_bfree) * status.f_frsize;
}

}  // namespace

void LinuxRuntime::throw_unknown(const std::string& id) {
  fail(Code::not_found, "there is no sandbox '{}'", id);
}

std::shared_ptr<LinuxRuntime::Entry> LinuxRuntime::find(const std::string& id) {
  return entries_.with([&](Entries& entries) {
    const auto found = entries.find(id);
    return found == entries.end() ? nullptr : found->second;
  });
}

void LinuxRuntime::reserve(const std::string& id, std::shared_ptr<Entry> entry) {
  const bool inserted = entries_.with([&](Entries& entries) {
    if (ending_) fail(Code::unavailable, "the runtime is ending");
    return entries.emplace(id, std::move(entry)).second;
  });
  if (!inserted) fail(Code::already_exists, "there is a sandbox '{}' already", id);
}

Runtime::Created LinuxRuntime::create(const SandboxSpec& wanted) {
  SandboxSpec spec = wanted;
  if (spec.id.empty()) spec.id = new_sandbox_id();
  if (spec.hostname.empty()) spec.hostname = spec.id;
  validate(spec);
  ChosenImage image = image_choice_.choose(spec.image);
  // Before its own entry is locked: two that want to join each other would wait for ever.
  std::shared_ptr<Berth> berth = spec.joins.empty() ? nullptr : find_berth(spec.joins);
  return create_from(spec, std::move(image), std::move(berth));
}

Runtime::Created LinuxRuntime::create_from(const SandboxSpec& spec, ChosenImage image,
                                           std::shared_ptr<Berth> berth) {
  const auto entry = std::make_shared<Entry>();
  // Before anybody can find it: he waits until it is up, or is not to be.
  const std::lock_guard lock(entry->mutex);
  entry->gone = true;
  reserve(spec.id, entry);
  OnFailure forget([&] { entries_.with([&](Entries& entries) { entries.erase(spec.id); }); });
  entry->image = std::move(image);
  linux::Channel guest = bring_up(*entry, spec, std::move(berth));
  forget.release();
  entry->gone = false;
  entry->watch_tag = ends_.add(spec.id, entry->pidfd);
  return {.sandbox = describe(*entry), .guest = std::move(guest)};
}

linux::Channel LinuxRuntime::bring_up(Entry& entry, const SandboxSpec& spec,
                                      std::shared_ptr<Berth> berth) {
  pool_->note_request();
  volumes_.use(spec.mounts);
  OnFailure release_volumes([&] { volumes_.release(spec.mounts); });
  Shell shell = berth ? shells_.make_in(std::move(berth), spec.limits) : obtain_shell(spec);
  OnFailure unmake([&] { shells_.unmake(ShellMaker::remains_of(shell), shell.pidfd); });
  linux::Channel guest = dresser_.dress(shell, spec, entry.image);

  Record& record = entry.record;
  record.spec = spec;
  record.created = std::chrono::system_clock::now();
  record.pid = shell.pid;
  record.start_time = linux::start_time_of(shell.pid).value_or(0);
  record.boot_id = boot_id_;
  record.unit = shell.unit;
  record.id_slot = shell.id_slot;
  record.disk_device = shell.disk_device;
  if (entry.image.on_host) record.host_folder = host_image_;
  record.layers = entry.image.layers;
  record.default_command = entry.image.config.entrypoint;
  record.default_command.insert(record.default_command.end(), entry.image.config.command.begin(),
                                entry.image.config.command.end());
  record.berth = shell.berth->name();
  if (const auto& slot = shell.berth->slot()) {
    record.has_network = true;
    record.network_slot = slot->index;
    record.address = slot->address;
  }
  write_record(record, *shell.berth, shell.folder.get());
  shell.boot.send(guest::kKeep);
  entry.pidfd = std::move(shell.pidfd);
  entry.stage = std::move(shell.stage);
  entry.berth = std::move(shell.berth);
  entry.state = State::running;
  unmake.release();
  release_volumes.release();
  return guest;
}

// Nobody reads it before this process has died: what it says is whole by then, or it is none and
// the guest, which has not been told to stay, is gone. What it shares may change until there is a
// record to change.
void LinuxRuntime::write_record(Record& record, Berth& berth, int folder_fd) {
  const linux::Fd file =
      linux::open_at(folder_fd, kRecord, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  berth.with([&](const Berth::Shared& shared) {
    record.spec.hostname = shared.hostname;
    record.spec.network = shared.policy;
    linux::write_all(file.get(), encode(record));
  });
}

// Also that of one that has exited.
std::shared_ptr<Berth> LinuxRuntime::find_berth(const std::string& id) {
  const auto entry = find(id);
  if (!entry) throw_unknown(id);
  const std::lock_guard lock(entry->mutex);
  if (entry->gone) throw_unknown(id);
  return entry->berth;
}

Shell LinuxRuntime::obtain_shell(const SandboxSpec& spec) {
  const Limits& limits = spec.limits;
  const linux::CgroupLimits enforced = cgroup_limits(limits, folders_.lasting_fd);
  cgroups_.require_controllers(enforced);
  std::optional<Shell> shell;
  if (can_be_given(limits)) shell = pool_->take();
  if (!shell) shell = shells_.make(limits, spec.network.has_value());
  OnFailure unmake([&] { shells_.unmake(ShellMaker::remains_of(*shell), shell->pidfd); });
  if (!same_cgroup_limits(shell->limits, limits)) shell->cgroup.set_limits(enforced);
  if (spec.network) {
    const auto& slot = shell->berth->slot();
    if (!slot) fail(Code::unavailable, "this engine has no network for sandboxes");
    network_->set_policy(slot->index, *spec.network);
  }
  shell->berth->with([&](Berth::Shared& shared) {
    shared.hostname = spec.hostname;
    shared.policy = spec.network;
  });
  unmake.release();
  return std::move(*shell);
}

linux::Channel LinuxRuntime::connect(const std::string& id) {
  return with_living(id, [&](Entry& entry) {
    if (entry.state == State::paused)
      fail(Code::unavailable, "sandbox '{}' is paused; 'hearth resume' lets it go on", id);
    const linux::Fd folder =
        linux::open_at(folders_.sandboxes.get(), entry.record.unit, O_PATH | O_DIRECTORY);
    return linux::connect_at(folder.get(), kGuestSocket);
  });
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
  const Record& record = entry.record;
  // What the v1 freezer holds does not die, and what waits for its turn at a disk dies when it has
  // had it.
  const bool throttled = record.spec.limits.io.any();
  if (entry.state == State::paused || throttled) {
    if (auto cgroup = cgroups_.find(record.unit)) {
      if (throttled) cgroup->lift_io_limits(linux::find_disk(folders_.lasting_fd));
      if (entry.state == State::paused) cgroup->thaw();
    }
  }
  shells_.unmake({.unit = record.unit, .id_slot = record.id_slot, .berth = entry.berth},
                 entry.pidfd);
  logs_.remove(record.unit);
  // Nobody will read what has not reached the disk by now.
  if (entry.stage && record.disk_device != 0) give_up_disk(entry.stage.get(), record.disk_device);
  entry.stage.reset();
  entry.state = State::exited;
  volumes_.release(record.spec.mounts);
  // Closing the pidfd took it off the watch, mostly before the watcher has looked.
  ends_.forget(entry.watch_tag);
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
  sandbox.address = record.address;
  sandbox.default_command = record.default_command;
  sandbox.surfaces = record.spec.surfaces;
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
                   .oom_kills = usage.oom_kills,
                   .read_bytes = usage.read_bytes,
                   .written_bytes = usage.written_bytes};
  if (entry.stage) sandbox.usage.disk_bytes = used_bytes(entry.stage.get());
  if (entry.record.has_network && network_) {
    try {
      const network::Traffic traffic = network_->traffic(entry.record.network_slot);
      sandbox.usage.received_bytes = traffic.received_bytes;
      sandbox.usage.sent_bytes = traffic.sent_bytes;
    } catch (const Error&) {
      // Its link went with it.
    }
  }
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
  // Who is being made is among them, and waited for; nobody joins them any more.
  const Entries last = entries_.with([this](const Entries& entries) {
    ending_ = true;
    return entries;
  });
  pool_->drain();
  kill_all(last);
  for (const auto& [id, entry] : last) {
    try {
      destroy(id);
    } catch (const Error& error) {
      log::error("a sandbox does not go", {{"id", id}, {"error", error.what()}});
    }
  }
  // Also of those whose making failed, and whose unmaking then failed too.
  for (const std::string& unit : cgroups_.list()) sweep(unit);
  linux::remove_all_at(folders_.images.get(), host_image_);
  partings_.let_go_of_all();
  if (network_) network_->remove();
  cgroups_.remove_tree();
  left_nothing_ = true;
}

// The kernel takes them down side by side. Nobody is to wonder why they end.
void LinuxRuntime::kill_all(const Entries& entries) {
  for (const auto& [id, entry] : entries) {
    const std::lock_guard lock(entry->mutex);
    if (entry->gone || !entry->pidfd) continue;
    ends_.forget(entry->watch_tag);
    entry->pidfd.send_signal(SIGKILL);
  }
}

void LinuxRuntime::leave_nothing_of_nobody() {
  if (left_nothing_ || !list().empty()) return;
  destroy_all();
}

}  // namespace hearth::runtime
