#include "cli/environment.h"

#include <unistd.h>

#include <fmt/format.h>

#include "cli/values.h"
#include "linux/fd.h"

namespace hearth::cli {

namespace {

// Nothing where it is not ours to read.
std::string read_e2b_key(const std::string& state_dir) {
  const std::string path = fmt::format("{}/{}", state_dir, kE2bKeyFile);
  if (::access(path.c_str(), R_OK) != 0) return {};
  std::string key = linux::read_file(path, 256);
  while (key.ends_with('\n')) key.pop_back();
  return key;
}

// What names of sandboxes' ports end in. Browsers and curl find every name below localhost on this
// machine; for others an engine has a domain of its own (--e2b-domain), and says so to its clients.
std::string local_domain(std::string_view url) {
  constexpr std::string_view kHere = "http://127.0.0.1:";
  if (!url.starts_with(kHere)) return {};
  return fmt::format("localhost:{}", url.substr(kHere.size()));
}

}  // namespace

std::string environment_lines(const std::string& state_dir, const Endpoints& endpoints,
                              Secrets secrets) {
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
  add("E2B_SANDBOX_URL", endpoints.e2b);  // one listener for both
  add("E2B_DOMAIN", local_domain(endpoints.e2b));
  if (!endpoints.e2b.empty() && secrets == Secrets::shown)
    add("E2B_API_KEY", read_e2b_key(state_dir));
  add("HEARTH_METRICS_URL", endpoints.metrics);
  return text;
}

}  // namespace hearth::cli
