#include <algorithm>
#include <cstdio>

#include "base/time_text.h"
#include "cli/json_object.h"
#include "cli/sandbox_text.h"
#include "cli/table.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "runtime/client.h"

namespace hearth::cli {
namespace {

Row row_of(const runtime::Sandbox& sandbox, Time now, bool with_address) {
  const auto limit = sandbox.limits.memory_bytes;
  Row row{sandbox.id,
          std::string(runtime::to_string(sandbox.state)),
          sandbox.image,
          format_age(now - sandbox.created),
          std::to_string(sandbox.pid),
          fmt::format("{} / {}", format_size(sandbox.usage.memory_bytes),
                      limit == 0 ? "-" : format_size(limit)),
          std::to_string(sandbox.usage.pids)};
  if (with_address) row.push_back(sandbox.address.empty() ? "-" : sandbox.address);
  return row;
}

std::string format_sandboxes(const std::vector<runtime::Sandbox>& sandboxes, Format format) {
  if (format == Format::json) {
    std::vector<std::string> elements;
    for (const auto& sandbox : sandboxes) elements.push_back(to_json(sandbox));
    return json_array(elements);
  }
  if (format == Format::id) {
    std::string text;
    for (const auto& sandbox : sandboxes) text += sandbox.id + '\n';
    return text;
  }
  const bool with_address = std::ranges::any_of(
      sandboxes, [](const runtime::Sandbox& sandbox) { return !sandbox.address.empty(); });
  Row heading{"ID", "STATE", "IMAGE", "AGE", "PID", "MEMORY", "PROCESSES"};
  if (with_address) heading.emplace_back("ADDRESS");
  std::vector<Row> rows;
  const Time now = SystemClock().now();
  for (const auto& sandbox : sandboxes) rows.push_back(row_of(sandbox, now, with_address));
  return format_table(heading, rows);
}

}  // namespace

int ls(const LsOptions& options) {
  const auto sandboxes = runtime::RuntimeClient(options.state_dir).list();
  std::fputs(format_sandboxes(sandboxes, options.format).c_str(), stdout);
  return 0;
}

}  // namespace hearth::cli
