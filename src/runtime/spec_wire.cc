// How the runtime's words cross a process boundary, as parts of messages and records.
#include "base/error.h"
#include "runtime/protocol.h"

namespace hearth::runtime {
namespace {

constexpr std::uint32_t kMaxMountFiles = 4096;
// One for each resource.
constexpr std::uint32_t kMaxUlimits = RLIM_NLIMITS;

void put(wire::Writer& out, const Limits& limits) {
  out.u64(limits.memory_bytes).u32(limits.cpu_millis).u32(limits.pids).u64(limits.disk_bytes);
  const IoLimits& io = limits.io;
  out.u64(io.read_bytes).u64(io.write_bytes).u64(io.read_ops).u64(io.write_ops);
}

Limits read_limits(wire::Reader& in) {
  Limits limits;
  limits.memory_bytes = in.u64();
  limits.cpu_millis = in.u32();
  limits.pids = in.u32();
  limits.disk_bytes = in.u64();
  limits.io.read_bytes = in.u64();
  limits.io.write_bytes = in.u64();
  limits.io.read_ops = in.u64();
  limits.io.write_ops = in.u64();
  return limits;
}

void put(wire::Writer& out, const MountSpec& mount) {
  out.u8(static_cast<std::uint8_t>(mount.kind)).text(mount.source).text(mount.target);
  out.boolean(mount.read_only).u64(mount.bytes).text(mount.content);
  out.u32(static_cast<std::uint32_t>(mount.files.size()));
  for (const MountFile& file : mount.files) out.text(file.path).text(file.content).u32(file.mode);
  out.boolean(mount.changes).u32(mount.group).u8(static_cast<std::uint8_t>(mount.regroup));
  out.text(mount.sub_path).u32(mount.mode);
}

std::vector<MountFile> read_files(wire::Reader& in) {
  const std::uint32_t count = in.u32();
  if (count > kMaxMountFiles)
    fail(Code::invalid, "{} files in one mount; at most {}", count, kMaxMountFiles);
  std::vector<MountFile> files;
  for (std::uint32_t i = 0; i < count; ++i) {
    MountFile file;
    file.path = in.text();
    file.content = in.text();
    file.mode = in.u32();
    files.push_back(std::move(file));
  }
  return files;
}

Regroup read_regroup(wire::Reader& in) {
  const std::uint8_t choice = in.u8();
  if (choice > static_cast<std::uint8_t>(Regroup::always))
    fail(Code::invalid, "there is no way {} to give files to a group", choice);
  return static_cast<Regroup>(choice);
}

MountSpec read_mount(wire::Reader& in) {
  MountSpec mount;
  const std::uint8_t kind = in.u8();
  if (kind < static_cast<std::uint8_t>(MountKind::volume) ||
      kind > static_cast<std::uint8_t>(MountKind::tree)) {
    fail(Code::invalid, "there is no mount of kind {}", kind);
  }
  mount.kind = static_cast<MountKind>(kind);
  mount.source = in.text();
  mount.target = in.text();
  mount.read_only = in.boolean();
  mount.bytes = in.u64();
  mount.content = in.text();
  mount.files = read_files(in);
  mount.changes = in.boolean();
  mount.group = in.u32();
  mount.regroup = read_regroup(in);
  mount.sub_path = in.text();
  mount.mode = in.u32();
  return mount;
}

void put(wire::Writer& out, const LogLimits& log) {
  out.u64(log.bytes).u32(log.files);
}

LogLimits read_log_limits(wire::Reader& in) {
  LogLimits log;
  log.bytes = in.u64();
  log.files = in.u32();
  return log;
}

DiskPlace read_disk_place(wire::Reader& in) {
  const std::uint8_t place = in.u8();
  if (place < static_cast<std::uint8_t>(DiskPlace::memory) ||
      place > static_cast<std::uint8_t>(DiskPlace::disk)) {
    fail(Code::invalid, "there is no place {} for a writable layer", place);
  }
  return static_cast<DiskPlace>(place);
}

void put_ulimits(wire::Writer& out, const std::vector<linux::ResourceLimit>& ulimits) {
  out.u32(static_cast<std::uint32_t>(ulimits.size()));
  for (const linux::ResourceLimit& limit : ulimits)
    out.u32(limit.resource).u64(limit.soft).u64(limit.hard);
}

std::vector<linux::ResourceLimit> read_ulimits(wire::Reader& in) {
  const std::uint32_t count = in.u32();
  if (count > kMaxUlimits) fail(Code::invalid, "{} ulimits; at most {}", count, kMaxUlimits);
  std::vector<linux::ResourceLimit> ulimits(count);
  for (linux::ResourceLimit& limit : ulimits) {
    limit.resource = in.u32();
    limit.soft = in.u64();
    limit.hard = in.u64();
  }
  return ulimits;
}

}  // namespace

void put_time(wire::Writer& out, Time time) {
  out.u64(static_cast<std::uint64_t>(time.time_since_epoch().count()));
}

Time read_time(wire::Reader& in) {
  return Time(Duration(static_cast<Duration::rep>(in.u64())));
}

void put(wire::Writer& out, const std::vector<MountSpec>& mounts) {
  out.u32(static_cast<std::uint32_t>(mounts.size()));
  for (const MountSpec& mount : mounts) put(out, mount);
}

std::vector<MountSpec> read_mounts(wire::Reader& in) {
  const std::uint32_t count = in.u32();
  if (count > kMaxMounts)
    fail(Code::invalid, "{} mounts in one sandbox; at most {}", count, kMaxMounts);
  std::vector<MountSpec> mounts;
  for (std::uint32_t i = 0; i < count; ++i) mounts.push_back(read_mount(in));
  return mounts;
}

void put(wire::Writer& out, const SandboxSpec& spec) {
  out.text(spec.id).text(spec.image).texts(spec.environment).text(spec.user).text(spec.directory);
  put(out, spec.limits);
  out.u8(static_cast<std::uint8_t>(spec.disk_on)).boolean(spec.read_only_root);
  put_ulimits(out, spec.ulimits);
  out.boolean(spec.network.has_value());
  if (spec.network) network::put(out, *spec.network);
  put(out, spec.mounts);
  guest::put(out, spec.surfaces);
  out.text(spec.token);
  out.boolean(spec.ends_with_client);
  put(out, spec.log);
  out.text(spec.hostname).text(spec.joins).texts(spec.sudoers);
  guest::put(out, spec.rights);
  out.texts(spec.sysctls).text(spec.hosts);
}

SandboxSpec read_spec(wire::Reader& in) {
  SandboxSpec spec;
  spec.id = in.text();
  spec.image = in.text();
  spec.environment = in.texts();
  spec.user = in.text();
  spec.directory = in.text();
  spec.limits = read_limits(in);
  spec.disk_on = read_disk_place(in);
  spec.read_only_root = in.boolean();
  spec.ulimits = read_ulimits(in);
  if (in.boolean()) spec.network = network::read_policy(in);
  spec.mounts = read_mounts(in);
  spec.surfaces = guest::read_surface_ports(in);
  spec.token = in.text();
  spec.ends_with_client = in.boolean();
  spec.log = read_log_limits(in);
  spec.hostname = in.text();
  spec.joins = in.text();
  spec.sudoers = in.texts();
  spec.rights = guest::read_process_rights(in);
  spec.sysctls = in.texts();
  spec.hosts = in.text();
  return spec;
}

void put(wire::Writer& out, const Sandbox& sandbox) {
  out.text(sandbox.id).u8(static_cast<std::uint8_t>(sandbox.state)).text(sandbox.image);
  put_time(out, sandbox.created);
  out.u32(static_cast<std::uint32_t>(sandbox.pid));
  put(out, sandbox.limits);
  const Usage& usage = sandbox.usage;
  out.u64(usage.memory_bytes).u64(usage.memory_peak_bytes).u64(usage.cpu_microseconds);
  out.u64(usage.pids).u64(usage.oom_kills).u64(usage.read_bytes).u64(usage.written_bytes);
  out.u64(usage.received_bytes).u64(usage.sent_bytes).u64(usage.disk_bytes);
  out.text(sandbox.address).texts(sandbox.default_command);
  guest::put(out, sandbox.surfaces);
}

Sandbox read_sandbox(wire::Reader& in) {
  Sandbox sandbox;
  sandbox.id = in.text();
  const std::uint8_t state = in.u8();
  if (state < static_cast<std::uint8_t>(State::running) ||
      state > static_cast<std::uint8_t>(State::paused)) {
    fail(Code::invalid, "there is no state {}", state);
  }
  sandbox.state = static_cast<State>(state);
  sandbox.image = in.text();
  sandbox.created = read_time(in);
  sandbox.pid = static_cast<int>(in.u32());
  sandbox.limits = read_limits(in);
  Usage& usage = sandbox.usage;
  usage.memory_bytes = in.u64();
  usage.memory_peak_bytes = in.u64();
  usage.cpu_microseconds = in.u64();
  usage.pids = in.u64();
  usage.oom_kills = in.u64();
  usage.read_bytes = in.u64();
  usage.written_bytes = in.u64();
  usage.received_bytes = in.u64();
  usage.sent_bytes = in.u64();
  usage.disk_bytes = in.u64();
  sandbox.address = in.text();
  sandbox.default_command = in.texts();
  sandbox.surfaces = guest::read_surface_ports(in);
  return sandbox;
}

std::string_view to_string(DiskPlace place) {
  return place == DiskPlace::disk ? "disk" : "memory";
}

std::string_view to_string(State state) {
  switch (state) {
    case State::running:
      return "running";
    case State::paused:
      return "paused";
    case State::exited:
      break;
  }
  return "exited";
}

}  // namespace hearth::runtime
