// `hearth controller`: our controllers on any cluster, in the place of agent-sandbox-controller;
// and `hearth crds`, which prints what that cluster must know first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "controllers/options.h"
#include "model/meta.h"

namespace hearth::cli {

// Of the conversion webhook. Names and defaults are those of agent-sandbox-controller.
struct WebhookFlags {
  // Nothing: if the CRD of Sandboxes names our Service.
  std::optional<bool> is_enabled;
  std::uint32_t port = 9443;
  std::string service = "agent-sandbox-webhook-service";
  std::string ns;  // of the Service; empty: ours
  // False: the certificate is somebody else's, in these files, and so are the CRDs' caBundles.
  bool manages_certificates = true;
  std::string folder = "/tmp/k8s-webhook-server/serving-certs";
  std::string certificate = "tls.crt";
  std::string key = "tls.key";
};

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
  WebhookFlags webhook;
  std::string access_log;  // a file, or "-"; empty: none
  bool tracing = false;
  double api_qps = -1;  // not above 0: any
  unsigned api_burst = 10;
  log::Level log_level = log::Level::info;
  log::Format log_format = log::Format::json;
  std::vector<std::string> without_effect;  // flags that were given, and do nothing here
};

struct CrdsOptions {
  bool all_versions = false;  // also those that need a conversion webhook
  // The Service of that webhook, and all versions with it; empty: none of ours.
  model::Key conversion_service;
};

// Until it is told to end, or another leads in its place.
int controller(const ControllerOptions& options);
int crds(const CrdsOptions& options);

}  // namespace hearth::cli
