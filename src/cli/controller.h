// `hearth controller`: our controllers on any cluster, in the place of agent-sandbox-controller;
// and `hearth crds`, which prints what that cluster must know first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "controllers/options.h"

namespace hearth::cli {

struct ControllerOptions {
  bool version_only = false;
  std::string kubeconfig;  // empty: KUBECONFIG, or the pod's own account
  std::string context;
  controllers::Options controllers;
  // Claims, pools and templates; nothing: if the server has those kinds.
  std::optional<bool> extensions;
  bool leader_elect = true;
  std::string lease_namespace;            // empty: ours
  std::string metrics_address = ":8080";  // "0": not served
  std::string health_address = ":8081";
  std::string e2b_address = "0";  // of the E2B API and the gateway
  std::string e2b_domain;
  double api_qps = -1;  // not above 0: any
  unsigned api_burst = 10;
  log::Level log_level = log::Level::info;
  log::Format log_format = log::Format::json;
  std::vector<std::string> without_effect;  // flags that were given, and do nothing here
};

struct CrdsOptions {
  bool all_versions = false;  // also those that need a conversion webhook
};

// Until it is told to end, or another leads in its place.
int controller(const ControllerOptions& options);
int crds(const CrdsOptions& options);

}  // namespace hearth::cli
