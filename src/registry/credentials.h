// Who we are to a registry: what people keep in ~/.docker/config.json, and what Kubernetes calls a
// pull secret (the same text).
//
// Secrets are here and in the requests that need them: never in a message, a log or an argument.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::registry {

struct Credentials {
  std::string username;
  std::string password;
  std::string identity_token;  // in place of both: an OAuth2 refresh token

  bool empty() const { return username.empty() && identity_token.empty(); }
  bool operator==(const Credentials&) const = default;
};

class DockerConfig {
 public:
  struct Entry {
    std::string host;  // "docker.io", "localhost:5000"
    std::string path;  // the part of the registry that it is for; empty: all of it
    Credentials credentials;
  };

  // The most specific entry for this repository, from the file itself; where it names a helper
  // program, what that says. Empty credentials when there are none. Throws Error when a helper
  // fails.
  Credentials find(const std::string& host, const std::string& repository) const;

  std::vector<Entry> entries;
  std::map<std::string, std::string> helpers;  // by host
  std::string store;                           // the helper for all other hosts, or empty
};

// Throws Error(invalid) without quoting any of it.
DockerConfig parse_docker_config(std::string_view json);

// Nothing in it when there is no such file.
DockerConfig read_docker_config(const std::string& path);

// $DOCKER_CONFIG/config.json, else ~/.docker/config.json; empty when there is neither variable.
std::string default_docker_config_path();

}  // namespace hearth::registry
