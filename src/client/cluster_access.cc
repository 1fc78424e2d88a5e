#include "client/cluster_access.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "base/base64.h"
#include "base/error.h"
#include "linux/fd.h"

namespace hearth::client {
namespace {

using model::Json;
using model::text_at;

// Certificates of many clusters inline are some hundred KiB.
constexpr std::size_t kMostFileBytes = 4 << 20;
constexpr std::size_t kMostFiles = 64;

// One file, and where it is.
struct Source {
  std::string path;
  Json json;
};

// A named entry of the lists "clusters", "users" and "contexts".
struct Entry {
  const Source* source = nullptr;
  const Json* value = nullptr;
  std::string what;  // for people: "cluster 'a' in '/home/x/.kube/config'"

  std::string text(std::string_view name) const {
    const Json* found = model::find(*value, {name});
    if (!found || found->is_null()) return {};
    if (!found->is_string()) fail(Code::invalid, "{} of {} is not a text", name, what);
    return std::string(found->get_string());
  }
  // Paths count from the folder of their file.
  std::string path(std::string_view name) const {
    std::string text_or_empty = text(name);
    return text_or_empty.empty() ? std::string() : resolve(text_or_empty);
  }
  std::string resolve(const std::string& path) const {
    return (std::filesystem::path(source->path).parent_path() / path).lexically_normal().string();
  }
  // "x-data" (base64) wins over the file "x".
  net::Pem pem(const std::string& name) const {
    const std::string data = text(name + "-data");
    if (data.empty()) return {.file = path(name), .text = {}};
    auto decoded = base64_decode(data);
    if (!decoded) fail(Code::invalid, "{}-data of {} is not base64", name, what);
    return {.file = {}, .text = *std::move(decoded)};
  }
};

std::optional<Source> find_source(const std::string& path) {
  Source source{.path = path, .json = {}};
  std::string text;
  try {
    text = linux::read_file(path, kMostFileBytes);
  } catch (const Error& error) {
    if (error.code() == Code::not_found) return std::nullopt;
    throw;
  }
  try {
    source.json = model::parse_yaml(text).value;
  } catch (const Error& error) {
    // The parser's words say where, and never quote the file: it is full of secrets.
    fail(Code::invalid, "kubeconfig '{}': {}", path, error.what());
  }
  if (!source.json.is_object() && !source.json.is_null()) {
    fail(Code::invalid, "kubeconfig '{}' is not a kubeconfig", path);
  }
  return source;
}

// `list` "clusters" with entries {name, `member` "cluster"}.
std::optional<Entry> find_entry(const std::vector<Source>& sources, std::string_view list,
                                std::string_view member, std::string_view name) {
  for (const Source& source : sources) {
    const model::JsonArray* entries = model::array_at(source.json, {list});
    if (!entries) continue;
    for (const Json& entry : *entries) {
      if (text_at(entry, {"name"}) != name) continue;
      Entry found{&source, model::find(entry, {member}),
                  fmt::format("{} '{}' in '{}'", member, name, source.path)};
      if (!found.value || !found.value->is_object()) fail(Code::invalid, "{} is empty", found.what);
      return found;
    }
  }
  return std::nullopt;
}

Entry get_entry(const std::vector<Source>& sources, std::string_view list, std::string_view member,
                std::string_view name) {
  auto entry = find_entry(sources, list, member, name);
  if (!entry) fail(Code::not_found, "there is no {} '{}' in the kubeconfig", member, name);
  return *std::move(entry);
}

std::string current_context(const std::vector<Source>& sources) {
  for (const Source& source : sources) {
    const std::string_view name = text_at(source.json, {"current-context"});
    if (!name.empty()) return std::string(name);
  }
  fail(Code::not_found, "the kubeconfig has no current context: choose one with --context");
}

void refuse(const Entry& entry, std::initializer_list<std::string_view> members) {
  for (const std::string_view member : members) {
    const Json* found = model::find(*entry.value, {member});
    if (!found || found->is_null()) continue;
    if (found->is_string() && found->get_string().empty()) continue;
    fail(Code::invalid, "{} of {} is not supported", member, entry.what);
  }
}

// Whatever an extension of the cluster says for plugins.
Json plugin_config(const Entry& cluster) {
  const model::JsonArray* extensions = model::array_at(*cluster.value, {"extensions"});
  if (!extensions) return nullptr;
  for (const Json& one : *extensions) {
    if (text_at(one, {"name"}) != "client.authentication.k8s.io/exec") continue;
    if (const Json* found = model::find(one, {"extension"})) return *found;
  }
  return nullptr;
}

void read_cluster(const Entry& cluster, ClusterAccess& access) {
  access.server = cluster.text("server");
  access.ca = cluster.pem("certificate-authority");
  access.is_insecure = model::is_true_at(*cluster.value, {"insecure-skip-tls-verify"});
  access.tls_server_name = cluster.text("tls-server-name");
  refuse(cluster, {"proxy-url"});
  if (access.server.empty()) fail(Code::invalid, "{} has no server", cluster.what);
  if (access.is_insecure && !access.ca.empty()) {
    fail(Code::invalid, "{} has an authority and insecure-skip-tls-verify: one of them is wrong",
         cluster.what);
  }
}

std::vector<std::string> texts(const Entry& entry, const Json& value, std::string_view member) {
  std::vector<std::string> all;
  const Json* list = model::find(value, {member});
  if (!list || list->is_null()) return all;
  if (!list->is_array()) fail(Code::invalid, "{} of {} is not a list", member, entry.what);
  for (const Json& one : list->get_array()) {
    if (!one.is_string())
      fail(Code::invalid, "{} of {} is not a list of texts", member, entry.what);
    all.emplace_back(one.get_string());
  }
  return all;
}

ExecPlugin read_plugin(const Entry& user, const Json& exec, const Entry& cluster) {
  ExecPlugin plugin;
  plugin.api_version = text_at(exec, {"apiVersion"});
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    fail(Code::invalid, "exec of {} has the apiVersion '{}', which is none we know", user.what,
         plugin.api_version);
  }
  if (text_at(exec, {"interactiveMode"}) == "Always") {
    fail(Code::invalid, "exec of {} wants a terminal, which it cannot have", user.what);
  }
  std::string program(text_at(exec, {"command"}));
  if (program.empty()) fail(Code::invalid, "exec of {} has no command", user.what);
  if (program.find('/') != std::string::npos) program = user.resolve(program);
  plugin.command.push_back(std::move(program));
  for (std::string& argument : texts(user, exec, "args")) {
    plugin.command.push_back(std::move(argument));
  }
  if (const model::JsonArray* variables = model::array_at(exec, {"env"})) {
    for (const Json& one : *variables) {
      plugin.environment.push_back(
          fmt::format("{}={}", text_at(one, {"name"}), text_at(one, {"value"})));
    }
  }
  plugin.install_hint = text_at(exec, {"installHint"});
  plugin.provide_cluster_info = model::is_true_at(exec, {"provideClusterInfo"});
  if (plugin.provide_cluster_info) plugin.cluster_config = plugin_config(cluster);
  return plugin;
}

void read_user(const Entry& user, const Entry& cluster, ClusterAccess& access) {
  access.token = user.text("token");
  access.token_file = user.path("tokenFile");
  access.username = user.text("username");
  access.password = user.text("password");
  access.certificate = user.pem("client-certificate");
  access.key = user.pem("client-key");
  access.as = user.text("as");
  access.as_uid = user.text("as-uid");
  access.as_groups = texts(user, *user.value, "as-groups");
  // Without it we would be someone else than asked for.
  refuse(user, {"auth-provider", "as-user-extra"});
  if (access.certificate.empty() != access.key.empty()) {
    fail(Code::invalid, "{} has a client certificate or a key, but not both", user.what);
  }
  if (const Json* exec = model::find(*user.value, {"exec"}); exec && exec->is_object()) {
    access.exec = read_plugin(user, *exec, cluster);
  }
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string without_blanks_around(std::string text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  text.erase(text.find_last_not_of(kBlanks) + 1);
  text.erase(0, text.find_first_not_of(kBlanks));
  return text;
}

std::uint16_t parse_port(std::string_view text, std::string_view url) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) {
    fail(Code::invalid, "the server '{}' has no valid port", url);
  }
  return port;
}

}  // namespace

std::vector<std::string> kubeconfig_files() {
  const std::string listed = variable("KUBECONFIG");
  std::vector<std::string> files;
  for (std::size_t begin = 0; begin < listed.size();) {
    const std::size_t end = std::min(listed.find(':', begin), listed.size());
    if (end > begin) files.push_back(listed.substr(begin, end - begin));
    begin = end + 1;
  }
  const std::string home = variable("HOME");
  if (files.empty() && !home.empty()) files.push_back(home + "/.kube/config");
  return files;
}

ClusterAccess load_kubeconfig(const std::vector<std::string>& files, std::string_view context) {
  if (files.size() > kMostFiles) fail(Code::invalid, "more than {} kubeconfigs", kMostFiles);
  std::vector<Source> sources;
  for (const std::string& file : files) {
    if (auto source = find_source(file)) sources.push_back(*std::move(source));
  }
  if (sources.empty()) {
    fail(Code::not_found, "there is no kubeconfig{}{}{}", files.empty() ? "" : " '",
         files.empty() ? "" : files.front(), files.empty() ? "" : "'");
  }
  const std::string name = context.empty() ? current_context(sources) : std::string(context);
  const Entry chosen = get_entry(sources, "contexts", "context", name);
  const Entry cluster = get_entry(sources, "clusters", "cluster", chosen.text("cluster"));
  ClusterAccess access;
  read_cluster(cluster, access);
  if (const std::string user = chosen.text("user"); !user.empty()) {
    read_user(get_entry(sources, "users", "user", user), cluster, access);
  }
  if (std::string ns = chosen.text("namespace"); !ns.empty()) access.ns = std::move(ns);
  parse_server_url(access.server);
  return access;
}

std::optional<ClusterAccess> find_in_cluster_access(const std::string& folder) {
  const std::string host = variable("KUBERNETES_SERVICE_HOST");
  const std::string port = variable("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) return std::nullopt;
  const bool is_v6 = host.find(':') != std::string::npos;
  ClusterAccess access;
  access.server = fmt::format("https://{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
  access.ca.file = folder + "/ca.crt";
  access.token_file = folder + "/token";
  access.ns = without_blanks_around(linux::read_file(folder + "/namespace", 1024));
  parse_server_url(access.server);
  return access;
}

ServerUrl parse_server_url(std::string_view text) {
  // Not quoted: there may be a password in it.
  if (text.find_first_of("?#@ \t\r\n") != std::string_view::npos) {
    fail(Code::invalid, "the server's address is more than a host and a path");
  }
  ServerUrl url;
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
    url.is_tls = false;
    url.port = 80;
  } else {
    fail(Code::invalid, "the server '{}' is neither https:// nor http://", text);
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  url.base = rest.substr(slash);
  while (url.base.ends_with('/')) url.base.pop_back();
  std::string_view authority = rest.substr(0, slash);
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) fail(Code::invalid, "the server '{}' lacks a ']'", text);
    url.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
  } else {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  if (url.host.empty()) fail(Code::invalid, "the server '{}' has no host", text);
  if (!port.empty() && !port.starts_with(':')) {
    fail(Code::invalid, "the server '{}' has no valid port", text);
  }
  if (!port.empty()) url.port = parse_port(port.substr(1), text);
  return url;
}

}  // namespace hearth::client
