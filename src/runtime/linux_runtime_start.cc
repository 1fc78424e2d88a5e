// The first and the last minute of a LinuxRuntime: adoption, sweeping, layers.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/on_failure.h"
#include "guest/client.h"
#include "linux/capabilities.h"
#include "linux/files.h"
#include "linux/sealed_memfd.h"
#include "linux/seccomp_policy.h"
#include "runtime/host_image.h"
#include "runtime/linux_runtime.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;

// Long enough for a machine under load, short enough not to hold up the start.
constexpr Duration kHelloPatience = 2s;

// Differs from engine to engine, and is the same whenever one starts again.
std::uint32_t inode_of(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) throw_errno("stat the runtime's folder");
  return static_cast<std::uint32_t>(status.st_ino * 2654435761u);
}

std::string filter_bytes(const linux::SeccompPolicy& policy) {
  const std::vector<sock_filter> filter = linux::compile(policy);
  return {reinterpret_cast<const char*>(filter.data()), filter.size() * sizeof(sock_filter)};
}

guest::NurseryConfig nursery_config(const linux::CgroupTree& cgroups) {
  const linux::SplitPolicy split = linux::split_default_policy(cgroups.v2_limits());
  return {.common_filter = filter_bytes(split.common),
          .closing_filter = filter_bytes(split.closing),
          .capabilities = linux::default_capabilities().bits()};
}

// A birth is one processor's work; more of them at once only wait for each other.
unsigned nursery_count() {
  constexpr unsigned kMost = 8;
  return std::clamp(std::thread::hardware_concurrency(), 1U, kMost);
}

}  // namespace

LinuxRuntime::LinuxRuntime(const LinuxRuntimeOptions& options, linux::CgroupTree cgroups)
    : folders_(options.folder_fd, options.memory_folder_fd),
      boot_id_(read_boot_id()),
      host_image_("host-" + random_hex(4)),
      cgroups_(std::move(cgroups)),
      id_ranges_(inode_of(options.folder_fd)),
      store_({.folder_fd = folders_.store.get(),
              .unpack_program = options.unpack_program,
              .helper_ids = ids_of_slot(id_ranges_.acquire()),
              .quota_bytes = options.image_quota_bytes}),
      image_choice_(store_, fmt::format("/proc/self/fd/{}/{}", folders_.images.get(), host_image_)),
      volumes_(folders_.volumes.get(), options.host_paths),
      logs_(folders_.logs.get(), folders_.sandboxes.get()),
      network_(make_network(options)),
      dresser_({.facts_fd = folders_.facts.get(),
                .disks_fd = folders_.disks.get(),
                .id_ranges = id_ranges_,
                .images = image_choice_,
                .volumes = volumes_,
                .network = network_.get()},
               options.guest_program),
      nurseries_(linux::make_sealed_program(options.guest_program), nursery_config(cgroups_),
                 nursery_count()),
      shells_({.sandboxes_fd = folders_.sandboxes.get(),
               .disk_fd = folders_.lasting_fd,
               .cgroups = cgroups_,
               .id_ranges = id_ranges_,
               .nurseries = nurseries_,
               .network = network_.get(),
               .partings = partings_}) {
  adopt_and_sweep();
  adopt_logs();
  for (const std::string& name : linux::list_folder(folders_.disks.get()))
    linux::remove_all_at(folders_.disks.get(), name);
  start_network();
  make_host_layers();
  remove_unused_images();
  ends_.start([this](const std::string& id) { handle_end(id); });
  pool_ = std::make_unique<ShellPool>(
      shells_, PoolOptions{.with_network = network_ != nullptr, .size = options.warm});
}

// Without one the engine still serves those who want none.
std::unique_ptr<network::Network> LinuxRuntime::make_network(const LinuxRuntimeOptions& options) {
  if (!options.network) return nullptr;
  try {
    return std::make_unique<network::Network>(network::Options{.tag = options.tag});
  } catch (const Error& error) {
    log::warning("sandboxes have no network", {{"error", error.what()}});
    return nullptr;
  }
}

void LinuxRuntime::start_network() {
  if (!network_) return;
  try {
    swept_ += static_cast<unsigned>(network_->start());
  } catch (const Error& error) {
    // The pointer stays for those who hold it; whoever asks for a slot hears why.
    log::warning("sandboxes have no network", {{"error", error.what()}});
  }
}

LinuxRuntime::~LinuxRuntime() = default;

void LinuxRuntime::adopt_and_sweep() {
  std::set<std::string> units;
  for (const std::string& name : linux::list_folder(folders_.sandboxes.get())) units.insert(name);
  // A crash between the two may leave a cgroup without a folder.
  for (const std::string& name : cgroups_.list()) units.insert(name);
  Berths berths;
  for (const std::string& unit : units) {
    if (adopt(unit, berths)) {
      ++adopted_;
      continue;
    }
    sweep(unit);
    ++swept_;
  }
}

// False for everything that is not a living sandbox of ours.
bool LinuxRuntime::adopt(const std::string& unit, Berths& berths) {
  try {
    const linux::Fd folder =
        linux::open_at(folders_.sandboxes.get(), unit, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const Record record = parse_record(linux::read_file_at(folder.get(), kRecord));
    if (record.boot_id != boot_id_ || record.unit != unit) return false;
    auto pidfd = linux::Pidfd::find(record.pid);
    // In this order: what the pidfd names cannot change any more.
    if (!pidfd || linux::start_time_of(record.pid) != record.start_time) return false;
    if (pidfd->wait_for_end(Deadline::after(0s))) return false;
    const auto cgroup = cgroups_.find(unit);
    if (!cgroup) return false;
    auto entry = std::make_shared<Entry>();
    if (cgroup->frozen()) {
      entry->state = State::paused;  // it will not answer, and is as we left it
    } else {
      guest::Connection guest(linux::connect_at(folder.get(), kGuestSocket));
      auto greeting = guest.hello(Deadline::after(kHelloPatience));
      if (greeting.hello.protocol != guest::kProtocolVersion) return false;
      entry->stage = std::move(greeting.stage);
    }
    entry->image = image_choice_.choose_again(record.layers, !record.host_folder.empty());
    entry->berth = adopt_berth(record, berths);
    volumes_.use(record.spec.mounts);

    const std::string& id = record.spec.id;
    entry->record = record;
    entry->pidfd = std::move(*pidfd);
    id_ranges_.mark_used(record.id_slot);
    entry->watch_tag = ends_.add(id, entry->pidfd);
    entries_.with([&](Entries& entries) { entries.emplace(id, entry); });
    return true;
  } catch (const Error& error) {
    log::debug("not adopted", {{"unit", unit}, {"error", error.what()}});
    return false;
  }
}

// The first that is found of those who share it brings it back.
std::shared_ptr<Berth> LinuxRuntime::adopt_berth(const Record& record, Berths& berths) {
  if (const auto found = berths.find(record.berth); found != berths.end()) {
    found->second->join(record.unit);
    return found->second;
  }
  auto berth = std::make_shared<Berth>(record.berth, record.unit, record.pid);
  if (record.has_network && network_)
    berth->give_slot(
        network_->adopt(record.network_slot, record.spec.network.value_or(network::Policy{})));
  berth->with([&](Berth::Shared& shared) {
    shared.hostname = record.spec.hostname;
    shared.policy = record.spec.network;
  });
  return berths[record.berth] = std::move(berth);
}

// Goes on with those that an earlier life of ours kept.
void LinuxRuntime::adopt_logs() {
  std::map<std::string, std::shared_ptr<Entry>> living;
  entries_.with([&](const Entries& entries) {
    for (const auto& [id, entry] : entries) living.emplace(entry->record.unit, entry);
  });
  for (const std::string& unit : logs_.list()) {
    const auto found = living.find(unit);
    try {
      if (found == living.end())
        logs_.remove(unit);
      else if (found->second->state != State::paused)
        logs_.keep(unit, found->second->record.spec.log);
    } catch (const Error& error) {
      log::warning("a log is not kept any more", {{"unit", unit}, {"error", error.what()}});
    }
  }
}

void LinuxRuntime::sweep(const std::string& unit) {
  log::info("sweeping the remains of a sandbox", {{"unit", unit}});
  try {
    // A guest that we cannot speak to any more is still a process to end.
    const linux::Fd folder =
        linux::open_at(folders_.sandboxes.get(), unit, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const Record record = parse_record(linux::read_file_at(folder.get(), kRecord));
    auto pidfd = record.boot_id == boot_id_ ? linux::Pidfd::find(record.pid) : std::nullopt;
    if (pidfd && linux::start_time_of(record.pid) == record.start_time) {
      pidfd->send_signal(SIGKILL);
      pidfd->wait_for_end(Deadline::after(5s));
    }
  } catch (const Error&) {
    // No record, no process: it was never kept.
  }
  cgroups_.remove(unit);
  linux::remove_all_at(folders_.sandboxes.get(), unit);
}

void LinuxRuntime::make_host_layers() {
  OnFailure remove([&] { linux::remove_all_at(folders_.images.get(), host_image_); });
  try {
    const linux::Fd folder = make_folder(folders_.images.get(), host_image_.c_str(), 0755);
    make_host_image(folder.get());
  } catch (const Error& error) {
    fail(error.code(), "make image 'host' in the state folder: {}", error.what());
  }
  remove.release();
}

// Layers of an earlier start, unless a sandbox from then still stands on them.
void LinuxRuntime::remove_unused_images() {
  std::set<std::string> used{host_image_};
  entries_.with([&](const Entries& entries) {
    for (const auto& [id, entry] : entries) used.insert(entry->record.host_folder);
  });
  for (const std::string& name : linux::list_folder(folders_.images.get())) {
    if (!used.contains(name)) linux::remove_all_at(folders_.images.get(), name);
  }
}

}  // namespace hearth::runtime
