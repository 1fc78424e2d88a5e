#include <cstdio>

#include "cli/command.h"
#include "cli/json_object.h"
#include "cli/life.h"
#include "cli/sandbox_text.h"
#include "cli/table.h"
#include "cli/values.h"
#include "runtime/client.h"

namespace hearth::cli {
namespace {

std::string of_limit(const std::string& used, std::uint64_t limit, const std::string& limit_text) {
  return fmt::format("{} / {}", used, limit == 0 ? "-" : limit_text);
}

Row row_of(const runtime::Sandbox& sandbox) {
  const runtime::Usage& usage = sandbox.usage;
  const runtime::Limits& limits = sandbox.limits;
  const double seconds = static_cast<double>(usage.cpu_microseconds) / 1e6;
  return {
      sandbox.id,
      std::string(runtime::to_string(sandbox.state)),
      fmt::format("{:.2f}s", seconds),
      of_limit(format_size(usage.memory_bytes), limits.memory_bytes,
               format_size(limits.memory_bytes)),
      of_limit(std::to_string(usage.pids), limits.pids, std::to_string(limits.pids)),
      fmt::format("{} / {}", format_size(usage.read_bytes), format_size(usage.written_bytes)),
      fmt::format("{} / {}", format_size(usage.received_bytes), format_size(usage.sent_bytes)),
  };
}

std::string format_stats(const std::vector<runtime::Sandbox>& sandboxes, Format format) {
  if (format == Format::json) {
    std::vector<std::string> elements;
    for (const runtime::Sandbox& sandbox : sandboxes) {
      elements.push_back(JsonObject()
                             .text("id", sandbox.id)
                             .text("state", runtime::to_string(sandbox.state))
                             .raw("limits", to_json(sandbox.limits))
                             .raw("usage", to_json(sandbox.usage))
                             .str());
    }
    return json_array(elements);
  }
  std::vector<Row> rows;
  for (const runtime::Sandbox& sandbox : sandboxes) rows.push_back(row_of(sandbox));
  return format_table(
      {"ID", "STATE", "CPU TIME", "MEMORY", "PROCESSES", "READ / WRITTEN", "RECEIVED / SENT"},
      rows);
}

}  // namespace

int stats(const StatsOptions& options) {
  runtime::RuntimeClient client(options.state_dir);
  std::vector<runtime::Sandbox> sandboxes;
  if (options.ids.empty()) sandboxes = client.list();
  int exit_code = 0;
  for (const std::string& id : options.ids) {
    try {
      sandboxes.push_back(client.get(id));
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
      complain("stats", error.what());
      exit_code = kExitFailure;
    }
  }
  std::fputs(format_stats(sandboxes, options.format).c_str(), stdout);
  return exit_code;
}

}  // namespace hearth::cli
