// What happens to a sandbox between its beginning and its end: standing still, snapshots, rules.
#include <fcntl.h>
#include <unistd.h>

#include "base/id.h"
#include "base/log.h"
#include "base/on_failure.h"
#include "guest/client.h"
#include "guest/stage.h"
#include "linux/files.h"
#include "linux/namespaces.h"
#include "runtime/file_tree.h"
#include "runtime/late_mounts.h"
#include "runtime/limits.h"
#include "runtime/linux_runtime.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;

// More at once than anybody needs, and fewer than a machine can make in a request's time.
constexpr unsigned kMostForks = 1000;

// A guest that takes longer to write a few files is not one that we made.
constexpr Duration kGuestPatience = 10s;

}  // namespace

void LinuxRuntime::handle_end(const std::string& id) {
  const auto entry = find(id);
  if (!entry) return;
  const std::lock_guard lock(entry->mutex);
  // It may be another one of that name by now.
  if (entry->gone || entry->state == State::exited) return;
  try {
    if (!entry->pidfd.wait_for_end(Deadline::after(0s))) return;
    entry->state = State::exited;
    log::info("sandbox ended by itself", {{"id", id}});
  } catch (const Error& error) {
    log::error("a sandbox seemed to end by itself", {{"id", id}, {"error", error.what()}});
  }
}

void LinuxRuntime::pause(const std::string& id) {
  with_living(id, [&](Entry& entry) {
    if (entry.state == State::paused) return;
    auto cgroup = cgroups_.find(entry.record.unit);
    if (!cgroup) fail(Code::internal, "sandbox '{}' has lost its cgroup", id);
    cgroup->freeze();
    entry.state = State::paused;
  });
}

void LinuxRuntime::resume(const std::string& id) {
  with_living(id, [&](Entry& entry) {
    if (entry.state != State::paused) return;
    auto cgroup = cgroups_.find(entry.record.unit);
    if (!cgroup) fail(Code::internal, "sandbox '{}' has lost its cgroup", id);
    cgroup->thaw();
    entry.state = State::running;
    // One that was paused when we started could not be asked.
    if (logs_.has(entry.record.unit)) logs_.keep(entry.record.unit, entry.record.spec.log);
  });
}

void LinuxRuntime::configure(const std::string& id, const Belongings& belongings) {
  if (!belongings.hostname.empty()) check_hostname(belongings.hostname);
  linux::Channel channel = connect(id);
  with_living(id, [&](Entry& entry) {
    // Before anything is mounted: nobody's volume is shown to somebody else, be it for a moment.
    if (entry.record.configured)
      fail(Code::conflict, "the sandbox was configured before, and is somebody's");
    const Record before = entry.record;
    OnFailure forget([&] {
      entry.record = before;
      rewrite_record(entry);
    });
    entry.record.configured = true;
    for (const MountSpec& volume : belongings.volumes) {
      if (volume.kind != MountKind::volume)
        fail(Code::invalid, "the mount on '{}' is no volume", volume.target);
      entry.record.spec.mounts.push_back(volume);
    }
    check(entry.record.spec.mounts);
    volumes_.use(belongings.volumes);
    OnFailure release([&] { volumes_.release(belongings.volumes); });
    rewrite_record(entry);
    hand_over(entry, belongings, guest::Connection(std::move(channel)));
    release.release();
    forget.release();
  });
}

void LinuxRuntime::hand_over(Entry& entry, const Belongings& belongings, guest::Connection guest) {
  const std::uint32_t slot = entry.record.id_slot;
  const PreparedMounts prepared = volumes_.prepare(
      belongings.volumes, {.ids = ids_of_slot(slot), .mapping_fd = id_ranges_.mapping_fd(slot)});
  std::vector<LateMount> mounts;
  for (std::size_t i = 0; i < prepared.fds.size(); ++i)
    mounts.push_back({.fd = prepared.fds[i].get(), .target = prepared.attachments[i].target});
  attach_late(entry.pidfd, mounts);
  OnFailure detach([&] { detach_late(entry.pidfd, mounts); });
  guest.configure(belongings.configuration, Deadline::after(kGuestPatience));
  // Last, what can hardly fail: either everything has happened or nothing.
  if (!belongings.hostname.empty()) {
    linux::set_hostname_of(entry.pidfd, belongings.hostname);
    entry.berth->with([&](Berth::Shared& shared) {
      shared.hostname = belongings.hostname;
      write_shared_again(shared);
    });
  }
  detach.release();
}

void LinuxRuntime::replace_files(const std::string& id, const MountSpec& tree) {
  if (tree.kind != MountKind::tree || !tree.changes)
    fail(Code::invalid, "the mount on '{}' is none whose files change", tree.target);
  check({tree});
  with_living(id, [&](Entry& entry) {
    const std::string name = find_tree(entry.record.spec.mounts, tree.target);
    const linux::Fd folder = linux::open_at(folders_.sandboxes.get(), entry.record.unit,
                                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    replace_file_tree(folder.get(), name, tree, ids_of_slot(entry.record.id_slot));
  });
}

void LinuxRuntime::rewrite_record(const Entry& entry) {
  const linux::Fd folder =
      linux::open_at(folders_.sandboxes.get(), entry.record.unit, O_RDONLY | O_DIRECTORY);
  entry.berth->with([&](const Berth::Shared& shared) {
    Record record = entry.record;
    record.spec.hostname = shared.hostname;
    record.spec.network = shared.policy;
    linux::replace_file_at(folder.get(), kRecord, encode(record));
  });
}

void LinuxRuntime::keep_log(const std::string& id) {
  with_living(id, [&](Entry& entry) {
    if (entry.record.spec.log.files == 0) return;
    if (entry.state == State::paused)
      fail(Code::unavailable, "sandbox '{}' is paused; 'hearth resume' lets it go on", id);
    logs_.keep(entry.record.unit, entry.record.spec.log);
  });
}

std::vector<LogFile> LinuxRuntime::open_log(const std::string& id) {
  const auto entry = find(id);
  if (!entry) throw_unknown(id);
  const std::lock_guard lock(entry->mutex);
  if (entry->gone) throw_unknown(id);
  return logs_.open(entry->record.unit);
}

void LinuxRuntime::set_services(const std::vector<network::Service>& services) {
  if (!network_) fail(Code::unavailable, "there is no network for services");
  network_->set_services(services);
}

void LinuxRuntime::set_name_server(std::uint16_t port) {
  if (!network_) fail(Code::unavailable, "there is no network for a name server");
  network_->set_name_server(port);
}

void LinuxRuntime::set_policy(const std::string& id, const network::Policy& policy) {
  network::check(policy);
  with_living(id, [&](Entry& entry) {
    const auto& slot = entry.berth->slot();
    if (!slot || !network_) fail(Code::invalid, "sandbox '{}' has no network", id);
    entry.berth->with([&](Berth::Shared& shared) {
      network_->set_policy(slot->index, policy);
      shared.policy = policy;
      write_shared_again(shared);
    });
  });
}

// Into the records of all that share it. One without a record is being made or unmade: it will
// have the news, or will not need it.
void LinuxRuntime::write_shared_again(const Berth::Shared& shared) {
  for (const std::string& unit : shared.units) {
    try {
      const linux::Fd folder =
          linux::open_at(folders_.sandboxes.get(), unit, O_RDONLY | O_DIRECTORY);
      Record record = parse_record(linux::read_file_at(folder.get(), kRecord));
      record.spec.hostname = shared.hostname;
      record.spec.network = shared.policy;
      linux::replace_file_at(folder.get(), kRecord, encode(record));
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
    }
  }
}

// The files as they are now, as layers on top of those that the sandbox stands on. It stands still
// while its writable layer is copied.
ChosenImage LinuxRuntime::take_snapshot(Entry& entry) {
  const std::string& id = entry.record.spec.id;
  auto cgroup = cgroups_.find(entry.record.unit);
  if (!cgroup) fail(Code::internal, "sandbox '{}' has lost its cgroup", id);
  const bool was_paused = entry.state == State::paused;
  if (!entry.stage) {
    fail(Code::unavailable,
         "sandbox '{}' was paused when the engine started; resume it first, once", id);
  }
  if (!was_paused) cgroup->freeze();
  const OnFailure thaw([&] {  // in any case
    if (!was_paused) cgroup->thaw();
  });
  const linux::IdRange ids = ids_of_slot(entry.record.id_slot);
  std::vector<std::string> layers = entry.image.layers;
  std::vector<image::Lease> held;
  const auto add = [&](const char* name) {
    const linux::Fd upper =
        linux::open_at(entry.stage.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    held.push_back(store_.add_upper(upper.get(), ids));
    layers.push_back(held.back().layers().front());
  };
  add(guest::kRootUpper);
  if (entry.image.on_host) add(guest::kUsrUpper);
  ChosenImage snapshot = image_choice_.choose_again(layers, entry.image.on_host);
  snapshot.config = entry.image.config;
  return snapshot;
}

image::Image LinuxRuntime::commit(const std::string& id, const std::string& name) {
  // Before the work: layers that nobody names stay until the next collection.
  if (!image::is_image_name(name)) fail(Code::invalid, "'{}' is no name for an image", name);
  return with_living(id, [&](Entry& entry) {
    const ChosenImage snapshot = take_snapshot(entry);
    image::Image image;
    image.name = name;
    image.id = "sha256:" + random_hex(32);
    image.layers = snapshot.layers;
    image.config = snapshot.config;
    if (snapshot.on_host) image.config.labels[kBaseLabel] = kHostImage;
    image.created = std::chrono::system_clock::now();
    store_.put_image(image);
    return *store_.find(name);
  });
}

std::vector<Sandbox> LinuxRuntime::fork(const std::string& id, unsigned count) {
  if (count == 0 || count > kMostForks)
    fail(Code::invalid, "{} forks; from 1 to {} can be made at once", count, kMostForks);
  SandboxSpec spec;
  const ChosenImage snapshot = with_living(id, [&](Entry& entry) {
    spec = entry.record.spec;
    entry.berth->with([&](const Berth::Shared& shared) {
      if (!spec.joins.empty() || shared.units.size() > 1)
        fail(Code::invalid,
             "sandbox '{}' shares its network with another, which a fork of it could not; commit "
             "it to an image instead",
             id);
      spec.network = shared.policy;
    });
    return take_snapshot(entry);
  });
  spec.ends_with_client = false;
  for (const MountSpec& mount : spec.mounts) {
    if (mount.kind == MountKind::file || mount.kind == MountKind::tree)
      fail(Code::invalid,
           "sandbox '{}' has a secret file on '{}', which we did not keep; create "
           "one with it instead",
           id, mount.target);
  }
  std::vector<Sandbox> forks;
  OnFailure undo([&] {
    for (const Sandbox& fork : forks) destroy(fork.id);
  });
  for (unsigned i = 0; i < count; ++i) {
    spec.id = new_sandbox_id();
    spec.hostname = spec.id;
    ChosenImage image = image_choice_.choose_again(snapshot.layers, snapshot.on_host);
    image.config = snapshot.config;
    forks.push_back(create_from(spec, std::move(image)).sandbox);
  }
  undo.release();
  return forks;
}

bool LinuxRuntime::remove_image(const std::string& name) {
  const auto found = store_.find(name);
  if (!found) return false;
  store_.remove(found->name);
  const image::Collected collected = store_.collect_garbage();
  log::info("image removed", {{"image", found->name}, {"bytes_freed", collected.bytes}});
  return true;
}

}  // namespace hearth::runtime
