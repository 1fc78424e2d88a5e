#include <cstdio>
#include <optional>

#include "cli/json_object.h"
#include "cli/verbs.h"
#include "runtime/client.h"

namespace hearth::cli {

int version(const VersionOptions& options) {
  std::optional<runtime::Hello> engine;
  std::string why;
  try {
    engine = runtime::RuntimeClient(options.state_dir).hello();
  } catch (const Error& error) {
    why = error.what();
  }
  const JsonObject client = JsonObject().text("version", HEARTH_VERSION);
  if (options.format == Format::json) {
    JsonObject object;
    object.raw("client", client.str());
    if (engine) {
      object.raw("engine", JsonObject()
                               .text("version", engine->version)
                               .number("protocol", engine->protocol)
                               .number("pid", engine->pid)
                               .text("cgroups", engine->cgroups)
                               .str());
    } else {
      object.raw("engine", "null");
    }
    std::puts(object.str().c_str());
    return 0;
  }
  std::puts("client  " HEARTH_VERSION);
  if (engine)
    std::puts(fmt::format("engine  {} (pid {})", engine->version, engine->pid).c_str());
  else
    std::puts(fmt::format("engine  none: {}", why).c_str());
  return 0;
}

}  // namespace hearth::cli
