#include "access/kubeconfig.h"

#include <fcntl.h>

#include <filesystem>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/json_text.h"
#include "linux/fd.h"
#include "linux/files.h"

namespace hearth::access {
namespace {

// A text of JSON is one of YAML, whatever is in it.
std::string line(int indent, std::string_view key, std::string_view value) {
  if (value.empty()) return {};
  return fmt::format("{:{}}{}: {}\n", "", indent, key, json_quote(value));
}

}  // namespace

std::string kubeconfig_text(const Kubeconfig& config) {
  const std::string name = json_quote(config.cluster);
  std::string text = "apiVersion: v1\nkind: Config\n";
  text += fmt::format("clusters:\n- name: {}\n  cluster:\n", name);
  text += line(4, "server", config.server);
  text += line(4, "certificate-authority-data", base64_encode(config.authority));
  text += fmt::format("users:\n- name: {}\n  user:\n", json_quote(config.user));
  text += line(4, "token", config.token);
  text += line(4, "client-certificate-data", base64_encode(config.identity.certificate));
  text += line(4, "client-key-data", base64_encode(config.identity.key));
  text += fmt::format("contexts:\n- name: {}\n  context:\n", name);
  text += line(4, "cluster", config.cluster) + line(4, "user", config.user) +
          line(4, "namespace", config.ns);
  return text + line(0, "current-context", config.cluster);
}

void write_kubeconfig(const std::string& path, const Kubeconfig& config) {
  const std::filesystem::path file(path);
  if (file.filename().empty()) fail(Code::invalid, "'{}' is no file name", path);
  const std::filesystem::path parent = file.parent_path();
  const linux::Fd folder =
      linux::open_file(parent.empty() ? "." : parent.string(), O_RDONLY | O_DIRECTORY);
  linux::replace_file_at(folder.get(), file.filename().string(), kubeconfig_text(config));
}

}  // namespace hearth::access
