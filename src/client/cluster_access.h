// Where a cluster is and how to be let in: from kubeconfig files, or from inside a pod.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/json.h"
#include "net/tls.h"

namespace hearth::client {

// A program that is asked for credentials (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version;
  std::vector<std::string> command;      // the program and its arguments
  std::vector<std::string> environment;  // "NAME=value"
  std::string install_hint;              // for people who do not have it
  // It is told which cluster this is for, with the cluster's own words for it.
  bool provide_cluster_info = false;
  model::Json cluster_config;
};

struct ClusterAccess {
  std::string server;  // "https://host:6443", perhaps with a path
  net::Pem ca;         // empty: the authorities that the system trusts
  bool is_insecure = false;
  std::string tls_server_name;

  // Ways to say who asks. A token file is read again and again and wins over a token; both win
  // over a password, and all of them over a plugin.
  std::string token;
  std::string token_file;
  std::string username;
  std::string password;
  net::Pem certificate;
  net::Pem key;
  std::optional<ExecPlugin> exec;
  // In whose place: Impersonate-User and so on.
  std::string as;
  std::string as_uid;
  std::vector<std::string> as_groups;

  std::string ns = "default";  // where commands work unless told otherwise
};

// The files that KUBECONFIG names; otherwise ~/.kube/config.
std::vector<std::string> kubeconfig_files();

// What a context of these files says; `context` empty: the current one. Of several files the first
// that says something wins; files that are not there are skipped, paths in them count from their
// folder. Throws Error: not_found (no file, no such context), invalid (with the file and the
// reason; also for what we cannot do, such as proxies: better no access than a wrong one).
ClusterAccess load_kubeconfig(const std::vector<std::string>& files, std::string_view context = {});

// The account that a pod runs as; nothing outside of pods. Throws Error where half of it is there.
std::optional<ClusterAccess> find_in_cluster_access(
    const std::string& folder = "/var/run/secrets/kubernetes.io/serviceaccount");

// "https://[::1]:6443/base/" in parts. Throws Error(invalid).
struct ServerUrl {
  bool is_tls = true;
  std::string host;
  std::uint16_t port = 443;
  std::string base;  // "/base"; "" for none
};
ServerUrl parse_server_url(std::string_view text);

}  // namespace hearth::client
