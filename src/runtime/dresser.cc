#include "runtime/dresser.h"

#include <fcntl.h>
#include <linux/mount.h>

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "guest/sudo_door.h"
#include "linux/files.h"
#include "linux/mounts.h"
#include "runtime/disks.h"
#include "runtime/limits.h"

namespace hearth::runtime {
namespace {

linux::Fd clone_layer(const std::string& path, int mapping_fd) {
  linux::Fd mount = linux::clone_mount(path);
  // Overlayfs never writes to it; nobody else may, either.
  linux::set_mount_idmap(mount.get(), mapping_fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV);
  return mount;
}

// For everybody to execute, who may gain nothing by it.
linux::Fd clone_program(int program_fd) {
  linux::Fd mount = linux::clone_mount(fmt::format("/proc/self/fd/{}", program_fd));
  linux::set_mount_flags(mount.get(), MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  return mount;
}

const std::string& first_of(const std::string& one, const std::string& other,
                            const std::string& otherwise) {
  if (!one.empty()) return one;
  return other.empty() ? otherwise : other;
}

constexpr std::string_view kUsualHosts =
    "127.0.0.1 localhost\n::1 localhost ip6-localhost\n%ADDRESS% %HOSTNAME%\n";

std::string hosts_text(std::string_view wanted, std::string_view name, std::string_view address) {
  std::string text(wanted.empty() ? kUsualHosts : wanted);
  for (const auto& [mark, value] :
       {std::pair(kAddressMark, address), std::pair(kHostnameMark, name)})
    for (std::size_t at = text.find(mark); at != std::string::npos;
         at = text.find(mark, at + value.size()))
      text.replace(at, mark.size(), value);
  return text;
}

}  // namespace

Dresser::Dresser(Sources sources, const std::string& guest_program)
    : sources_(sources),
      facts_(sources.facts_fd),
      guest_program_(linux::open_file(guest_program, O_PATH)) {}

linux::Channel Dresser::dress(Shell& shell, const SandboxSpec& spec, const ChosenImage& image) {
  Outfit outfit;
  add_layers(outfit, shell, spec, image);
  add_attachments(outfit, shell, spec);
  add_settings(outfit, shell, spec, image.config);
  add_names(outfit, shell, spec);
  outfit.assignment.client = true;

  auto [ours, theirs] = linux::Channel::make_pair();
  std::vector<int> fds;
  for (const linux::Fd& mount : outfit.mounts) fds.push_back(mount.get());
  fds.push_back(theirs.fd());
  ShellMaker::assign(shell, outfit.assignment, fds);
  return std::move(ours);
}

// The image, and what is written on top of it.
void Dresser::add_layers(Outfit& outfit, Shell& shell, const SandboxSpec& spec,
                         const ChosenImage& image) {
  const int mapping = sources_.id_ranges.mapping_fd(shell.id_slot);
  const ImageLayers folders = sources_.images.folders_of(image);
  for (const auto* paths : {&folders.root, &folders.usr})
    for (const std::string& path : *paths) outfit.mounts.push_back(clone_layer(path, mapping));
  outfit.assignment.layers = static_cast<std::uint32_t>(folders.root.size());
  outfit.assignment.usr_layers = static_cast<std::uint32_t>(folders.usr.size());
  outfit.assignment.read_only_root = spec.read_only_root;
  outfit.assignment.disk = spec.disk_on == DiskPlace::disk;
  outfit.assignment.disk_bytes =
      outfit.assignment.disk ? spec.limits.disk_bytes : layer_in_memory(spec.limits);
  if (!outfit.assignment.disk) return;
  PrivateDisk disk = make_private_disk(sources_.disks_fd, spec.limits.disk_bytes);
  linux::set_mount_idmap(disk.mount.get(), mapping);
  shell.disk_device = disk.device;
  outfit.mounts.push_back(std::move(disk.mount));
}

// What is mounted into it, in this order: where two are in one place, the last one counts.
void Dresser::add_attachments(Outfit& outfit, const Shell& shell, const SandboxSpec& spec) {
  const auto add = [&](auto prepared) {
    for (guest::Attachment& one : prepared.attachments)
      outfit.assignment.attachments.push_back(std::move(one));
    for (linux::Fd& fd : prepared.fds) outfit.mounts.push_back(std::move(fd));
  };
  add(facts_.mounts_for(spec.limits));
  if (!spec.sudoers.empty()) {
    outfit.assignment.sudoers = spec.sudoers;
    outfit.assignment.attachments.push_back({.target = guest::kSudoPath, .folder = false});
    outfit.mounts.push_back(clone_program(guest_program_.get()));
  }
  add(sources_.volumes.prepare(spec.mounts,
                               {.ids = ids_of_slot(shell.id_slot),
                                .mapping_fd = sources_.id_ranges.mapping_fd(shell.id_slot),
                                .folder_fd = shell.folder.get()}));
}

// What its processes start with.
void Dresser::add_settings(Outfit& outfit, const Shell& shell, const SandboxSpec& spec,
                           const image::Config& config) const {
  guest::Assignment& assignment = outfit.assignment;
  assignment.environment = config.environment;
  assignment.environment.insert(assignment.environment.end(), spec.environment.begin(),
                                spec.environment.end());
  assignment.user = first_of(spec.user, config.user, "root");
  assignment.directory = first_of(spec.directory, config.directory, "");
  assignment.ulimits = complete(spec.ulimits);
  assignment.rights = spec.rights;
  assignment.cpus = facts_.cpus_for(spec.limits, shell.id_slot);
  assignment.surfaces = spec.surfaces;
  assignment.token = spec.token;
}

// Its own name, and how it finds others. Who joins another has that one's.
void Dresser::add_names(Outfit& outfit, const Shell& shell, const SandboxSpec& spec) const {
  guest::Assignment& assignment = outfit.assignment;
  const std::string hostname =
      shell.berth->with([](const Berth::Shared& shared) { return shared.hostname; });
  if (spec.joins.empty()) {
    assignment.hostname = hostname;
    assignment.sysctls = spec.sysctls;
  }
  const auto& slot = shell.berth->slot();
  assignment.hosts =
      find_etc_text(spec.mounts, "/etc/hosts")
          .value_or(hosts_text(spec.hosts, hostname, slot ? slot->address : "127.0.1.1"));
  if (slot)
    assignment.resolv_conf = find_etc_text(spec.mounts, "/etc/resolv.conf")
                                 .value_or(sources_.network->resolv_conf_text());
}

}  // namespace hearth::runtime
