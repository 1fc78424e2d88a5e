#include <unistd.h>

#include <cstdio>

#include "cli/command.h"
#include "cli/endpoints.h"
#include "cli/environment.h"
#include "cli/verbs.h"

namespace hearth::cli {

int env(const EnvOptions& options) {
  const auto endpoints = find_endpoints(options.state_dir);
  if (!endpoints)
    complain("env", fmt::format("no engine of ours runs on '{}'; start one with 'hearth up'",
                                options.state_dir));
  std::fputs(
      environment_lines(options.state_dir, endpoints.value_or(Endpoints{}), Secrets::shown).c_str(),
      stdout);
  return 0;
}

}  // namespace hearth::cli
