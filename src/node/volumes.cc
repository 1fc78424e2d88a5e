// What is mounted into a container.
#include <algorithm>

#include "base/error.h"
#include "client/kinds.h"
#include "model/meta.h"
#include "model/quantity.h"
#include "node/plan_internal.h"
#include "node/provisioner.h"

namespace hearth::node {
namespace {

using model::text_at;
using runtime::MountKind;
using runtime::MountSpec;

// What is mounted is everybody's to write, as on other nodes: who runs as whom is the pod's affair.
constexpr std::uint32_t kOpenFolder = 0777;
constexpr std::uint64_t kUsualMemory = std::uint64_t{64} << 20;
constexpr std::uint64_t kLeastMemory = 4096;

// One entry of volumeMounts, with the volume it names.
struct Wanted {
  const Json& volume;
  std::string target;
  std::string sub_path;
  bool read_only = false;

  std::string_view name() const { return text_at(volume, {"name"}); }
};

std::string without_end(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

bool uses_volume(const Json& container, std::string_view name) {
  const JsonArray* mounts = model::array_at(container, {"volumeMounts"});
  return mounts && std::ranges::any_of(*mounts, [&](const Json& mount) {
           return text_at(mount, {"name"}) == name;
         });
}

bool is_shared(const Json& pod, std::string_view volume) {
  std::size_t users = 0;
  for (const std::string_view list : {"containers", "initContainers"})
    if (const JsonArray* containers = model::array_at(pod, {"spec", list}))
      users += static_cast<std::size_t>(std::ranges::count_if(
          *containers, [&](const Json& one) { return uses_volume(one, volume); }));
  return users > 1;
}

// What fsGroup means for a volume that can be written. Folders of the host are left as they are.
void plan_regroup(const PlanInput& input, const Identity& identity, bool is_new, MountSpec& mount) {
  if (!identity.widens_files) return;
  const bool only_if_root_differs =
      is_new ||
      text_at(input.pod, {"spec", "securityContext", "fsGroupChangePolicy"}) == "OnRootMismatch";
  mount.group = identity.group.value_or(0);
  mount.regroup =
      only_if_root_differs ? runtime::Regroup::where_root_differs : runtime::Regroup::always;
}

MountSpec plan_empty_dir(const PlanInput& input, const Wanted& wanted) {
  const auto limit = model::Quantity::parse(text_at(wanted.volume, {"emptyDir", "sizeLimit"}));
  const std::uint64_t asked =
      limit && *limit > model::Quantity() ? static_cast<std::uint64_t>(limit->units()) : 0;
  MountSpec mount;
  // A tmpfs belongs to one sandbox; what is shared lies on a disk.
  if (text_at(wanted.volume, {"emptyDir", "medium"}) == "Memory" && wanted.sub_path.empty() &&
      !is_shared(input.pod, wanted.name())) {
    const std::uint64_t memory = plan_limits(input).memory_bytes;
    mount.kind = MountKind::memory;
    mount.bytes = std::max(kLeastMemory, asked != 0 ? asked : memory != 0 ? memory : kUsualMemory);
    return mount;
  }
  mount.source = pod_volume_name(model::uid_of(input.pod), wanted.name());
  mount.bytes = asked != 0 ? asked : input.options.empty_dir_bytes;
  mount.mode = kOpenFolder;
  mount.sub_path = wanted.sub_path;
  return mount;
}

MountSpec plan_host_path(std::string path, const std::string& sub_path) {
  MountSpec mount;
  mount.kind = MountKind::host;
  mount.source = without_end(std::move(path));
  if (!sub_path.empty()) mount.source += "/" + sub_path;
  return mount;
}

MountSpec plan_claim(const PlanInput& input, const Wanted& wanted) {
  const std::string_view ns = model::namespace_of(input.pod);
  const std::string_view name = text_at(wanted.volume, {"persistentVolumeClaim", "claimName"});
  const auto claim = input.client.find(client::kPersistentVolumeClaims, ns, name);
  if (!claim) fail(Code::unavailable, "persistentvolumeclaim \"{}\" not found", name);
  const std::string_view volume_name = text_at(*claim, {"spec", "volumeName"});
  if (text_at(*claim, {"status", "phase"}) != "Bound" || volume_name.empty())
    fail(Code::unavailable, "pod has unbound immediate PersistentVolumeClaims: '{}'", name);
  if (text_at(*claim, {"spec", "volumeMode"}) == "Block")
    fail(Code::invalid, "claim '{}' is for a block device, which is not given to sandboxes", name);
  const auto volume = input.client.find(client::kPersistentVolumes, "", volume_name);
  if (!volume) fail(Code::unavailable, "persistentvolume \"{}\" not found", volume_name);
  if (text_at(*volume, {"spec", "csi", "driver"}) == kProvisioner) {
    MountSpec mount;
    mount.source = text_at(*volume, {"spec", "csi", "volumeHandle"});
    mount.mode = kOpenFolder;
    mount.sub_path = wanted.sub_path;
    return mount;
  }
  for (const std::string_view kind : {"hostPath", "local"})
    if (const std::string_view path = text_at(*volume, {"spec", kind, "path"}); !path.empty())
      return plan_host_path(std::string(path), wanted.sub_path);
  fail(Code::invalid, "volume '{}' of claim '{}' is of a kind that is not known here", volume_name,
       name);
}

// A folder, or the part of it that a subPath means.
MountSpec plan_files(const Files& files, const Identity& identity, const Wanted& wanted) {
  MountSpec mount;
  mount.kind = MountKind::tree;
  mount.changes = wanted.sub_path.empty();
  mount.group = identity.group.value_or(0);
  const std::string prefix = wanted.sub_path.empty() ? "" : wanted.sub_path + "/";
  for (const auto& [path, file] : files) {
    if (path == wanted.sub_path) {
      mount.kind = MountKind::file;
      mount.content = file.content;
      mount.mode = file.mode;
      mount.files.clear();
      return mount;
    }
    if (path.starts_with(prefix))
      mount.files.push_back({path.substr(prefix.size()), file.content, file.mode});
  }
  if (!prefix.empty() && mount.files.empty())
    fail(Code::invalid, "there is no '{}' in volume '{}'", wanted.sub_path, wanted.name());
  return mount;
}

MountSpec plan_mount(const PlanInput& input, const Identity& identity, const Wanted& wanted) {
  if (model::find(wanted.volume, {"emptyDir"})) {
    MountSpec mount = plan_empty_dir(input, wanted);
    plan_regroup(input, identity, /*is_new=*/true, mount);
    return mount;
  }
  if (const Json* path = model::find(wanted.volume, {"hostPath"}))
    return plan_host_path(std::string(text_at(*path, {"path"})), wanted.sub_path);
  if (const Json* claim = model::find(wanted.volume, {"persistentVolumeClaim"})) {
    MountSpec mount = plan_claim(input, wanted);
    if (mount.kind == MountKind::volume && !model::is_true_at(*claim, {"readOnly"}))
      plan_regroup(input, identity, /*is_new=*/false, mount);
    return mount;
  }
  if (const auto files = plan_volume_files(input, identity, wanted.volume))
    return plan_files(*files, identity, wanted);
  std::string_view kind;
  for (const auto& [member, value] : wanted.volume.as_object())
    if (member != "name" && !value.is_null()) kind = member;
  fail(Code::invalid, "volume '{}': '{}' is not supported", wanted.name(), kind);
}

// What is not there may come, and the pod waits for it.
MountSpec plan_mount_or_wait(const PlanInput& input, const Identity& identity,
                             const Wanted& wanted) {
  try {
    return plan_mount(input, identity, wanted);
  } catch (const Error& error) {
    if (error.code() != Code::not_found && error.code() != Code::unavailable) throw;
    fail(Code::unavailable, "MountVolume.SetUp failed for volume \"{}\" : {}", wanted.name(),
         error.what());
  }
}

const Json& find_volume(const Json& pod, std::string_view name) {
  if (const JsonArray* volumes = model::array_at(pod, {"spec", "volumes"}))
    for (const Json& volume : *volumes)
      if (volume.is_object() && text_at(volume, {"name"}) == name) return volume;
  fail(Code::not_found, "there is no volume '{}' in the pod", name);
}

Wanted read_wanted(const PlanInput& input, const Json& mount, const Variables& variables) {
  Wanted wanted{find_volume(input.pod, text_at(mount, {"name"})),
                without_end(std::string(text_at(mount, {"mountPath"}))),
                std::string(text_at(mount, {"subPath"})), model::is_true_at(mount, {"readOnly"})};
  if (const std::string_view text = text_at(mount, {"subPathExpr"}); !text.empty())
    wanted.sub_path = expand(text, variables);
  if (wanted.sub_path.find(kAddressMark) != std::string::npos)
    fail(Code::invalid, "subPathExpr of '{}' asks for the pod's address, which is not known yet",
         wanted.name());
  const std::string framed = "/" + wanted.sub_path + "/";
  if (wanted.sub_path.starts_with('/') || framed.find("/../") != std::string::npos)
    fail(Code::invalid, "subPath '{}' is no path below the volume", wanted.sub_path);
  wanted.sub_path = without_end(std::move(wanted.sub_path));
  const std::string_view source =
      model::find(wanted.volume, {"persistentVolumeClaim"}) ? "persistentVolumeClaim" : "emptyDir";
  if (model::is_true_at(wanted.volume, {source, "readOnly"})) wanted.read_only = true;
  return wanted;
}

bool mounts_on_token(const Json& container) {
  const JsonArray* all = model::array_at(container, {"volumeMounts"});
  return all && std::ranges::any_of(*all, [](const Json& mount) {
           return without_end(std::string(text_at(mount, {"mountPath"}))) == kTokenFolder;
         });
}

std::optional<MountSpec> plan_token_mount(const PlanInput& input, const Identity& identity) {
  const Files files = plan_token_files(input, identity);
  if (files.empty()) return std::nullopt;
  const Json none = JsonObject();
  MountSpec mount = plan_files(files, identity, {none, "", ""});
  mount.target = kTokenFolder;
  mount.read_only = true;
  return mount;
}

// Nothing for a mount of another kind.
std::optional<MountSpec> plan_changing_mount(const PlanInput& input, const Identity& identity,
                                             const Json& mount) {
  for (const std::string_view part : {"subPath", "subPathExpr"})
    if (!text_at(mount, {part}).empty()) return std::nullopt;
  const Json& volume = find_volume(input.pod, text_at(mount, {"name"}));
  const auto files = plan_volume_files(input, identity, volume);
  if (!files) return std::nullopt;
  MountSpec made = plan_files(*files, identity, {volume, "", ""});
  made.target = without_end(std::string(text_at(mount, {"mountPath"})));
  return made;
}

}  // namespace

std::vector<ChangingFiles> plan_changing_files(const PlanInput& input, const Identity& identity) {
  std::vector<ChangingFiles> all;
  // What goes wrong with one of them is no reason to keep the others from changing.
  const auto add = [&](const auto& plan) {
    try {
      if (std::optional<MountSpec> mount = plan()) all.push_back({std::move(*mount), ""});
    } catch (const Error& error) {
      all.push_back({MountSpec(), error.what()});
    }
  };
  if (const JsonArray* mounts = model::array_at(input.container, {"volumeMounts"}))
    for (const Json& mount : *mounts)
      add([&] { return plan_changing_mount(input, identity, mount); });
  if (!mounts_on_token(input.container)) add([&] { return plan_token_mount(input, identity); });
  return all;
}

std::vector<MountSpec> plan_mounts(const PlanInput& input, const Identity& identity,
                                   const Variables& variables) {
  std::vector<MountSpec> mounts;
  if (const JsonArray* all = model::array_at(input.container, {"volumeMounts"}))
    for (const Json& one : *all) {
      const Wanted wanted = read_wanted(input, one, variables);
      mounts.push_back(plan_mount_or_wait(input, identity, wanted));
      mounts.back().target = wanted.target;
      mounts.back().read_only = wanted.read_only;
    }
  if (!mounts_on_token(input.container))
    if (auto token = plan_token_mount(input, identity)) mounts.push_back(std::move(*token));
  // What lies in another comes after it.
  std::ranges::sort(mounts, {}, &MountSpec::target);
  return mounts;
}

}  // namespace hearth::node
