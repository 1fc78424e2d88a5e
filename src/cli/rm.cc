#include <cstdio>

#include "cli/command.h"
#include "cli/verbs.h"
#include "runtime/client.h"

namespace hearth::cli {

int rm(const RmOptions& options) {
  runtime::RuntimeClient client(options.state_dir);
  std::vector<std::string> ids = options.ids;
  if (options.all) {
    for (const runtime::Sandbox& sandbox : client.list()) ids.push_back(sandbox.id);
  }
  int exit_code = 0;
  for (const std::string& id : ids) {
    try {
      client.get(id);  // to the runtime an unknown id is success, to a person a typing error
      client.destroy(id);
      std::puts(id.c_str());
    } catch (const Error& error) {
      // With --all somebody else was faster.
      if (options.all && error.code() == Code::not_found) continue;
      complain("rm", error.what());
      exit_code = kExitFailure;
    }
  }
  return exit_code;
}

}  // namespace hearth::cli
