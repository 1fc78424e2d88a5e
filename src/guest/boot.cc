#include "guest/boot.h"

#include "base/error.h"
#include "base/wire.h"

namespace hearth::guest {
namespace {

// As many as a message can carry descriptors for, and more.
constexpr std::uint32_t kMaxList = 4096;

std::uint32_t read_count(wire::Reader& in) {
  const std::uint32_t count = in.u32();
  if (count > kMaxList) fail(Code::invalid, "a list of {}", count);
  return count;
}

}  // namespace

std::string encode(const NurseryConfig& config) {
  wire::Writer out;
  out.text(config.common_filter).text(config.closing_filter).u64(config.capabilities);
  out.boolean(config.joined);
  return std::move(out).take();
}

NurseryConfig parse_nursery_config(std::string_view bytes) {
  return wire::parse_whole(bytes, [](wire::Reader& in) {
    NurseryConfig config;
    config.common_filter = in.text();
    config.closing_filter = in.text();
    config.capabilities = in.u64();
    config.joined = in.boolean();
    return config;
  });
}

std::string encode(const ShellOrder& order) {
  wire::Writer out;
  out.u32(order.ids.first).u32(order.ids.count).u32(order.join_count);
  out.boolean(order.guest_cgroup).boolean(order.command_cgroup);
  return std::move(out).take();
}

ShellOrder parse_shell_order(std::string_view bytes) {
  return wire::parse_whole(bytes, [](wire::Reader& in) {
    ShellOrder order;
    order.ids.first = in.u32();
    order.ids.count = in.u32();
    order.join_count = read_count(in);
    order.guest_cgroup = in.boolean();
    order.command_cgroup = in.boolean();
    return order;
  });
}

std::string encode(const Assignment& assignment) {
  wire::Writer out;
  out.text(assignment.hostname).texts(assignment.environment);
  out.text(assignment.user).text(assignment.directory).u64(assignment.disk_bytes);
  out.u32(static_cast<std::uint32_t>(assignment.cpus.size()));
  for (const std::uint32_t cpu : assignment.cpus) out.u32(cpu);
  out.u32(static_cast<std::uint32_t>(assignment.ulimits.size()));
  for (const linux::ResourceLimit& limit : assignment.ulimits)
    out.u32(limit.resource).u64(limit.soft).u64(limit.hard);
  put(out, assignment.rights);
  out.texts(assignment.sysctls);
  out.u32(assignment.layers).u32(assignment.usr_layers).boolean(assignment.disk);
  out.boolean(assignment.read_only_root);
  out.u32(static_cast<std::uint32_t>(assignment.attachments.size()));
  for (const Attachment& one : assignment.attachments) out.text(one.target).boolean(one.folder);
  out.text(assignment.hosts).text(assignment.resolv_conf);
  put(out, assignment.surfaces);
  out.text(assignment.token).texts(assignment.sudoers).boolean(assignment.client);
  return std::move(out).take();
}

Assignment parse_assignment(std::string_view bytes) {
  return wire::parse_whole(bytes, [](wire::Reader& in) {
    Assignment assignment;
    assignment.hostname = in.text();
    assignment.environment = in.texts();
    assignment.user = in.text();
    assignment.directory = in.text();
    assignment.disk_bytes = in.u64();
    for (std::uint32_t left = read_count(in); left > 0; --left) {
      assignment.cpus.push_back(in.u32());
    }
    for (std::uint32_t left = read_count(in); left > 0; --left) {
      linux::ResourceLimit limit;
      limit.resource = in.u32();
      limit.soft = in.u64();
      limit.hard = in.u64();
      assignment.ulimits.push_back(limit);
    }
    assignment.rights = read_process_rights(in);
    assignment.sysctls = in.texts();
    assignment.layers = read_count(in);
    assignment.usr_layers = read_count(in);
    assignment.disk = in.boolean();
    assignment.read_only_root = in.boolean();
    for (std::uint32_t left = read_count(in); left > 0; --left) {
      Attachment one;
      one.target = in.text();
      one.folder = in.boolean();
      assignment.attachments.push_back(std::move(one));
    }
    assignment.hosts = in.text();
    assignment.resolv_conf = in.text();
    assignment.surfaces = read_surface_ports(in);
    assignment.token = in.text();
    assignment.sudoers = in.texts();
    assignment.client = in.boolean();
    return assignment;
  });
}

}  // namespace hearth::guest
