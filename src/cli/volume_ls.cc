#include <cstdio>

#include "base/time_text.h"
#include "cli/json_object.h"
#include "cli/life.h"
#include "cli/table.h"
#include "cli/values.h"
#include "runtime/client.h"

namespace hearth::cli {

int list_volumes(const VolumeLsOptions& options) {
  const auto volumes = runtime::RuntimeClient(options.state_dir).list_volumes();
  if (options.format == Format::json) {
    std::vector<std::string> elements;
    for (const runtime::Volume& volume : volumes) {
      elements.push_back(JsonObject()
                             .text("name", volume.name)
                             .text("created", format_rfc3339(volume.created, 0))
                             .boolean("used", volume.used)
                             .number("size_bytes", volume.size_bytes)
                             .number("taken_bytes", volume.taken_bytes)
                             .str());
    }
    std::fputs(json_array(elements).c_str(), stdout);
    return 0;
  }
  if (options.format == Format::id) {
    for (const runtime::Volume& volume : volumes) std::puts(volume.name.c_str());
    return 0;
  }
  std::vector<Row> rows;
  const Time now = SystemClock().now();
  for (const runtime::Volume& volume : volumes) {
    const bool sized = volume.size_bytes != 0;
    rows.push_back({volume.name, format_age(now - volume.created), volume.used ? "yes" : "no",
                    sized ? format_size(volume.size_bytes) : "-",
                    sized ? format_size(volume.taken_bytes) : "-"});
  }
  std::fputs(format_table({"NAME", "AGE", "USED", "SIZE", "TAKEN"}, rows).c_str(), stdout);
  return 0;
}

}  // namespace hearth::cli
