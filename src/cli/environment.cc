#include "cli/environment.h"

#include <unistd.h>

#include <fmt/format.h>

#include "cli/values.h"

namespace hearth::cli {

std::string environment_lines(const std::string& state_dir, const Endpoints& endpoints) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("export {}={}\n", name, shell_quote(value));
  };
  add("HEARTH_STATE_DIR", state_dir);
  const std::string kubeconfig = fmt::format("{}/{}", state_dir, kKubeconfigFile);
  if (!endpoints.kube.empty() && ::access(kubeconfig.c_str(), R_OK) == 0)
    add("KUBECONFIG", kubeconfig);
  add("HEARTH_API_URL", endpoints.api);
  add("E2B_API_URL", endpoints.e2b);
  add("HEARTH_METRICS_URL", endpoints.metrics);
  return text;
}

}  // namespace hearth::cli
