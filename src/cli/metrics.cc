#include "cli/metrics.h"

#include <algorithm>

#include <fmt/format.h>

#include "http/http.h"
#include "net/server.h"
#include "net/workers.h"

namespace hearth::cli {
namespace {

net::Router make_router(runtime::RuntimeClient& runtime, net::Workers& workers, Time started,
                        const metrics::Registry& registry) {
  net::Router router;
  router.add("GET", "/healthz",
             [](const http::Request&) { return http::text_response(200, "ok"); });
  const auto metrics = [&runtime, &registry, started](const http::Request&) {
    http::Response response{.body = render_metrics(runtime.list(), runtime.hello(), started) +
                                    registry.render()};
    response.headers.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    return response;
  };
  router.add("GET", "/metrics", metrics, {.workers = &workers});
  return router;
}

net::ServerOptions make_options(linux::Fd socket) {
  net::ServerOptions options;
  options.listen_fd = socket.release();
  // A scraper and a probe or two.
  options.max_connections = 64;
  return options;
}

}  // namespace

struct MetricsEndpoint::State {
  State(linux::Fd socket, const std::string& state_dir, Time started,
        const metrics::Registry& metrics)
      : runtime(state_dir),
        server(make_options(std::move(socket)), make_router(runtime, workers, started, metrics)) {
    server.start();
  }

  runtime::RuntimeClient runtime;
  net::Workers workers{1};
  net::Server server;
};

std::string render_metrics(const std::vector<runtime::Sandbox>& sandboxes,
                           const runtime::Hello& hello, Time started) {
  const auto count = [&](runtime::State state) {
    return std::ranges::count(sandboxes, state, &runtime::Sandbox::state);
  };
  std::string text =
      "# HELP hearth_build_info Always 1; the version is in the label.\n"
      "# TYPE hearth_build_info gauge\n"
      "hearth_build_info{version=\"" HEARTH_VERSION
      "\"} 1\n"
      "# HELP hearth_sandboxes Sandboxes on this machine, by state.\n"
      "# TYPE hearth_sandboxes gauge\n";
  for (const runtime::State state :
       {runtime::State::running, runtime::State::paused, runtime::State::exited}) {
    text += fmt::format("hearth_sandboxes{{state=\"{}\"}} {}\n", runtime::to_string(state),
                        count(state));
  }
  text += fmt::format(
      "# HELP hearth_warm_shells Shells that are ready for the next sandboxes.\n"
      "# TYPE hearth_warm_shells gauge\n"
      "hearth_warm_shells {}\n"
      "# HELP hearth_warm_hits_total Sandboxes that found a shell ready.\n"
      "# TYPE hearth_warm_hits_total counter\n"
      "hearth_warm_hits_total {}\n"
      "# HELP hearth_warm_misses_total Sandboxes that had to wait for a shell.\n"
      "# TYPE hearth_warm_misses_total counter\n"
      "hearth_warm_misses_total {}\n",
      hello.warm, hello.warm_hits, hello.warm_misses);
  const auto seconds = std::chrono::duration<double>(started.time_since_epoch()).count();
  text += fmt::format(
      "# HELP process_start_time_seconds When the engine started, in seconds since 1970.\n"
      "# TYPE process_start_time_seconds gauge\n"
      "process_start_time_seconds {:.3f}\n",
      seconds);
  return text;
}

MetricsEndpoint::MetricsEndpoint(linux::Fd socket, const std::string& state_dir, Time started,
                                 const metrics::Registry& metrics)
    : state_(std::make_unique<State>(std::move(socket), state_dir, started, metrics)) {}

MetricsEndpoint::~MetricsEndpoint() = default;

}  // namespace hearth::cli
