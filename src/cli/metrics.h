// The engine's health and numbers over HTTP: GET /healthz and GET /metrics, nothing else.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "linux/fd.h"
#include "metrics/registry.h"
#include "runtime/client.h"

namespace hearth::cli {

// Prometheus' text format 0.0.4.
std::string render_metrics(const std::vector<runtime::Sandbox>& sandboxes,
                           const runtime::Hello& hello, Time started);

class MetricsEndpoint {
 public:
  // Serves on `socket`, which listens already, until it is destroyed. Throws Error. `metrics` must
  // outlive it.
  MetricsEndpoint(linux::Fd socket, const std::string& state_dir, Time started,
                  const metrics::Registry& metrics);
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;
  ~MetricsEndpoint();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::cli
