#include "registry/credentials.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include <boost/json/value.hpp>

#include "base/base64.h"
#include "base/error.h"
#include "linux/fd.h"
#include "registry/credential_helper.h"
#include "registry/json_internal.h"

namespace hearth::registry {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxConfig = std::size_t{1} << 20;
// What Docker files the credentials of docker.io under, to this day.
constexpr std::string_view kDockerHubKey = "https://index.docker.io/v1/";

// "https://host/v2/" and "host/team" -> where they are for.
DockerConfig::Entry place_of(std::string_view key) {
  if (const std::size_t scheme = key.find("://"); scheme != std::string_view::npos) {
    key.remove_prefix(scheme + 3);
  }
  const std::size_t slash = key.find('/');
  DockerConfig::Entry entry{.host = std::string(key.substr(0, slash))};
  if (slash != std::string_view::npos) entry.path = key.substr(slash + 1);
  while (entry.path.ends_with('/')) entry.path.pop_back();
  // Not a folder, but the version of the protocol that was spoken once.
  if (entry.path == "v1" || entry.path == "v2") entry.path.clear();
  if (entry.host == "index.docker.io" || entry.host == "registry-1.docker.io") {
    entry.host = "docker.io";
  }
  return entry;
}

Credentials parse_auth(const json::object& object) {
  Credentials credentials{.username = find_text(object, "username"),
                          .password = find_text(object, "password"),
                          .identity_token = find_text(object, "identitytoken")};
  const std::string encoded = find_text(object, "auth");
  if (encoded.empty()) return credentials;
  const auto decoded = base64_decode(encoded);
  const std::size_t colon = decoded ? decoded->find(':') : std::string::npos;
  if (colon == std::string::npos) {
    fail(Code::invalid, "an 'auth' is not base64 of user:password");
  }
  credentials.username = decoded->substr(0, colon);
  credentials.password = decoded->substr(colon + 1);
  // Docker pads what it once encrypted.
  credentials.password.erase(
      std::min(credentials.password.size(), credentials.password.find('\0')));
  return credentials;
}

// Whether `path` is the repository or a folder above it.
bool covers(const std::string& path, const std::string& repository) {
  return path.empty() || repository == path || repository.starts_with(path + '/');
}

DockerConfig parse_checked(std::string_view text) {
  DockerConfig config;
  const json::value value = parse_json(text, "the Docker configuration");
  const json::object& object = object_of(value, "the Docker configuration");
  if (const json::object* auths = find_object(object, "auths")) {
    for (const auto& member : *auths) {
      DockerConfig::Entry entry = place_of(member.key());
      entry.credentials = parse_auth(object_of(member.value(), "an entry of 'auths'"));
      if (!entry.credentials.empty()) config.entries.push_back(std::move(entry));
    }
  }
  if (const json::object* helpers = find_object(object, "credHelpers")) {
    for (const auto& member : *helpers) {
      config.helpers[place_of(member.key()).host] = find_text(*helpers, member.key());
    }
  }
  config.store = find_text(object, "credsStore");
  return config;
}

}  // namespace

DockerConfig parse_docker_config(std::string_view text) {
  if (text.size() > kMaxConfig) {
    fail(Code::invalid, "the Docker configuration is larger than {} bytes", kMaxConfig);
  }
  return parse_checked(text);
}

DockerConfig read_docker_config(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) return {};
  const std::string text = linux::read_file(path, kMaxConfig);
  try {
    return parse_docker_config(text);
  } catch (const Error& error) {
    fail(error.code(), "'{}': {}", path, error.what());
  }
}

std::string default_docker_config_path() {
  if (const char* folder = std::getenv("DOCKER_CONFIG"); folder != nullptr && *folder != '\0') {
    return std::string(folder) + "/config.json";
  }
  const char* home = std::getenv("HOME");
  return home == nullptr || *home == '\0' ? "" : std::string(home) + "/.docker/config.json";
}

Credentials DockerConfig::find(const std::string& host, const std::string& repository) const {
  const std::string key(host == "docker.io" ? std::string(kDockerHubKey) : host);
  if (const auto helper = helpers.find(host); helper != helpers.end()) {
    return ask_credential_helper(helper->second, key);
  }
  const Entry* best = nullptr;
  for (const Entry& entry : entries) {
    if (entry.host != host || !covers(entry.path, repository)) continue;
    if (best == nullptr || entry.path.size() > best->path.size()) best = &entry;
  }
  if (best != nullptr) return best->credentials;
  return store.empty() ? Credentials{} : ask_credential_helper(store, key);
}

}  // namespace hearth::registry
