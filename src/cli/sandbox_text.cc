#include "cli/sandbox_text.h"

#include "base/time_text.h"
#include "cli/json_object.h"

namespace hearth::cli {

std::string to_json(const runtime::Limits& limits) {
  return JsonObject()
      .number("memory_bytes", limits.memory_bytes)
      .number("cpu_millis", limits.cpu_millis)
      .number("pids", limits.pids)
      .number("disk_bytes", limits.disk_bytes)
      .number("io_read_bytes", limits.io.read_bytes)
      .number("io_write_bytes", limits.io.write_bytes)
      .number("io_read_ops", limits.io.read_ops)
      .number("io_write_ops", limits.io.write_ops)
      .str();
}

std::string to_json(const runtime::Usage& usage) {
  return JsonObject()
      .number("memory_bytes", usage.memory_bytes)
      .number("memory_peak_bytes", usage.memory_peak_bytes)
      .number("cpu_microseconds", usage.cpu_microseconds)
      .number("pids", usage.pids)
      .number("oom_kills", usage.oom_kills)
      .number("read_bytes", usage.read_bytes)
      .number("written_bytes", usage.written_bytes)
      .number("received_bytes", usage.received_bytes)
      .number("sent_bytes", usage.sent_bytes)
      .str();
}

std::string to_json(const runtime::Sandbox& sandbox) {
  std::string command;
  for (const std::string& word : sandbox.default_command)
    command += (command.empty() ? "" : ",") + json_quote(word);
  JsonObject surfaces;
  for (const guest::SurfacePort& one : sandbox.surfaces)
    surfaces.number(guest::to_string(one.surface), one.port);
  JsonObject object;
  object.text("id", sandbox.id)
      .text("state", runtime::to_string(sandbox.state))
      .text("image", sandbox.image)
      .text("created", format_rfc3339(sandbox.created, 3))
      .number("pid", static_cast<std::uint64_t>(sandbox.pid))
      .text("address", sandbox.address)
      .raw("default_command", '[' + command + ']')
      .raw("surfaces", surfaces.str())
      .raw("limits", to_json(sandbox.limits))
      .raw("usage", to_json(sandbox.usage));
  return object.str();
}

}  // namespace hearth::cli
