#include "cli/sandbox_text.h"

#include "base/time_text.h"
#include "cli/json_object.h"

namespace hearth::cli {

std::string to_json(const runtime::Sandbox& sandbox) {
  JsonObject limits;
  limits.number("memory_bytes", sandbox.limits.memory_bytes)
      .number("cpu_millis", sandbox.limits.cpu_millis)
      .number("pids", sandbox.limits.pids)
      .number("disk_bytes", sandbox.limits.disk_bytes);
  JsonObject usage;
  usage.number("memory_bytes", sandbox.usage.memory_bytes)
      .number("memory_peak_bytes", sandbox.usage.memory_peak_bytes)
      .number("cpu_microseconds", sandbox.usage.cpu_microseconds)
      .number("pids", sandbox.usage.pids)
      .number("oom_kills", sandbox.usage.oom_kills);
  JsonObject object;
  object.text("id", sandbox.id)
      .text("state", runtime::to_string(sandbox.state))
      .text("image", sandbox.image)
      .text("created", format_rfc3339(sandbox.created, 3))
      .number("pid", static_cast<std::uint64_t>(sandbox.pid))
      .raw("limits", limits.str())
      .raw("usage", usage.str());
  return object.str();
}

}  // namespace hearth::cli
