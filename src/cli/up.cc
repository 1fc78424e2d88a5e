#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/on_failure.h"
#include "cli/demo.h"
#include "cli/endpoints.h"
#include "cli/engine_user.h"
#include "cli/kube_endpoint.h"
#include "cli/listening.h"
#include "cli/metrics.h"
#include "cli/otlp.h"
#include "cli/runtime_process.h"
#include "cli/signals.h"
#include "cli/state_folder.h"
#include "cli/verbs.h"
#include "metrics/registry.h"
#include "net/tls.h"
#include "runtime/client.h"

namespace hearth::cli {
namespace {

enum class Ending {
  everything,    // SIGINT: sandboxes too
  engine_only,   // SIGTERM, or the terminal is gone: sandboxes live on
  runtime_died,  // and with it what we are for
};

// A line for whoever watches, at once: what reads it may wait for it.
template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs((fmt::format(format, std::forward<Args>(args)...) + '\n').c_str(), stdout);
  std::fflush(stdout);
}

void tell_what_was_found(const RuntimeFound& runtime, const std::string& state_dir) {
  if (runtime.started) {
    say("runtime started (pid {}): {} sandboxes re-adopted, {} remains swept", runtime.hello.pid,
        runtime.hello.adopted, runtime.hello.swept);
  } else {
    say("runtime was running (pid {}): {} sandboxes re-adopted, 0 remains swept", runtime.hello.pid,
        runtime::RuntimeClient(state_dir).list().size());
  }
  const runtime::Hello& hello = runtime.hello;
  say("limits are enforced with cgroups {}", hello.cgroups);
  if (hello.network.empty())
    say("sandboxes have no network");
  else
    say("sandboxes have addresses of {}", hello.network);
}

void tell_what_is_warm(const RuntimeFound& runtime, unsigned wanted) {
  if (runtime.started)
    say("{} shells are kept ready for the next sandboxes", wanted);
  else
    say("{} shells are ready; the runtime keeps the options that it was started with",
        runtime.hello.warm);
}

// Better said here than in the runtime's words. As absolute paths: it may start elsewhere.
std::vector<std::string> find_host_paths(const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    std::error_code error;
    const auto real = std::filesystem::canonical(path, error);
    if (error || !std::filesystem::is_directory(real, error))
      fail(Code::invalid, "--allow-host-path: '{}' is no folder of this machine", path);
    found.push_back(real);
  }
  return found;
}

// While we may read what only root can.
std::string read_registry_ca(const std::string& path) {
  if (path.empty()) return {};
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file) fail(Code::invalid, "--registry-ca: '{}' cannot be read", path);
  try {
    net::make_tls_context(net::TlsClientOptions{.ca = {.text = text}});
  } catch (const Error&) {
    fail(Code::invalid, "--registry-ca: '{}' has no certificate (PEM) in it", path);
  }
  return text;
}

// Nothing where it is not wanted.
std::optional<E2bEndpointOptions> listen_for_e2b(const UpOptions& options) {
  if (!options.e2b) return std::nullopt;
  E2bEndpointOptions made;
  made.listening = listen_on(options.listen, options.e2b_port, "--e2b-port");
  made.domain = options.e2b_domain;
  made.templates = tenants::DefaultTemplates{.image = options.e2b_image, .warm = options.e2b_warm};
  made.team_warm = options.e2b_team_warm;
  made.team_idle = options.e2b_team_idle;
  if (options.e2b_tls_port)
    made.tls = listen_on(options.listen, *options.e2b_tls_port, "--e2b-tls-port");
  if (!options.access_log.empty()) made.access_log = gateway::open_access_file(options.access_log);
  return made;
}

// `watched` is a connection that nobody talks on: it becomes readable when the runtime is gone.
Ending wait_for_ending(Signals& signals, const runtime::RuntimeClient& watched) {
  while (true) {
    std::array<pollfd, 2> waiting = {{{.fd = signals.fd(), .events = POLLIN, .revents = 0},
                                      {.fd = watched.fd(), .events = POLLIN, .revents = 0}}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
      throw_errno("wait for signals");
    if (const auto signal = signals.next())
      return *signal == SIGINT ? Ending::everything : Ending::engine_only;
    if (waiting[1].revents != 0) return Ending::runtime_died;
  }
}

// Ends the runtime on a thread of its own, so that people who press Ctrl-C again get an answer.
void end_runtime_patiently(const std::string& state_dir, bool destroy_all, Signals& signals) {
  linux::Pipe done = linux::make_pipe();
  std::exception_ptr failure;
  std::jthread ending([&] {
    try {
      end_runtime(state_dir, destroy_all);
    } catch (...) {
      failure = std::current_exception();
    }
    done.write.reset();  // the main thread wakes up
  });
  while (true) {
    std::array<pollfd, 2> waiting = {{{.fd = signals.fd(), .events = POLLIN, .revents = 0},
                                      {.fd = done.read.get(), .events = POLLIN, .revents = 0}}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
      throw_errno("wait for the runtime");
    if (waiting[1].revents != 0) break;
    if (signals.next()) say("still at it; it ends by itself, and leaving now would leave remains");
  }
  ending.join();
  if (failure) std::rethrow_exception(failure);
}

int end(Ending ending, const UpOptions& options, Signals& signals) {
  try {
    remove_endpoints(options.state_dir);
  } catch (const Error& error) {
    // No reason to leave sandboxes behind as well.
    log::warning("endpoints.json is left behind", {{"error", error.what()}});
  }
  if (ending == Ending::runtime_died) {
    log::error(
        "hearth-runtime died; sandboxes may live on: 'hearth up' starts it again and re-adopts "
        "them");
    return kExitFailure;
  }
  const bool everything = ending == Ending::everything;
  const std::size_t count = runtime::RuntimeClient(options.state_dir).list().size();
  if (everything)
    say("ending: {} sandboxes, then the runtime", count);
  else
    say("ending: {} sandboxes live on; 'hearth up' re-adopts them", count);
  end_runtime_patiently(options.state_dir, everything, signals);
  say("ended");
  return 0;
}

}  // namespace

int up(const UpOptions& options) {
  const Time started = SystemClock().now();
  log::configure(log::parse_level(options.log_level), log::parse_format(options.log_format));
  Signals signals({SIGINT, SIGTERM, SIGHUP});

  const std::vector<std::string> host_paths = find_host_paths(options.host_paths);
  const std::string registry_ca = read_registry_ca(options.registry_ca);
  const EngineUser user = find_engine_user(options.user);
  make_state_folder(options.state_dir);
  const linux::Fd lock = lock_state_folder(options.state_dir);
  claim_state_folder(options.state_dir, user);
  Listening metrics = listen_on(options.listen, options.metrics_port, "--metrics-port");
  Listening kube = listen_on(options.listen, options.kube_port, "--kube-port");
  std::optional<E2bEndpointOptions> e2b = listen_for_e2b(options);
  const std::string e2b_url = e2b ? e2b->listening.url : std::string();

  const RuntimeFound runtime = ensure_runtime({.state_dir = options.state_dir,
                                               .owner = user.uid,
                                               .log_format = options.log_format,
                                               .log_level = options.log_level,
                                               .warm = options.warm,
                                               .network = options.network,
                                               .image_quota_bytes = options.image_quota_bytes,
                                               .host_paths = host_paths});
  OnFailure leave([&] {
    if (runtime.started) end_runtime(options.state_dir, /*destroy_all=*/false);
  });
  if (::geteuid() == 0) give_up_root(user);

  const runtime::RuntimeClient watched(options.state_dir);
  tell_what_was_found(runtime, options.state_dir);
  tell_what_is_warm(runtime, options.warm);
  const SystemClock clock;
  const std::unique_ptr<tracing::Tracer> tracer =
      options.tracing ? make_tracer(clock, "hearth") : nullptr;
  metrics::Registry numbers;
  auto api =
      std::make_unique<KubeEndpoint>(KubeEndpointOptions{.state_dir = options.state_dir,
                                                         .listening = std::move(kube),
                                                         .listen = options.listen,
                                                         .token = {},
                                                         .has_sandboxes = true,
                                                         .node_name = options.node_name,
                                                         .has_network = options.network,
                                                         .eviction_hard = options.eviction_hard,
                                                         .e2b = std::move(e2b),
                                                         .metrics = &numbers,
                                                         .registry_ca = registry_ca,
                                                         .tracer = tracer.get()});
  std::optional<MetricsEndpoint> endpoint;
  endpoint.emplace(std::move(metrics.socket), options.state_dir, started, numbers);
  const Endpoints endpoints{.kube = api->url(), .api = {}, .e2b = e2b_url, .metrics = metrics.url};
  write_endpoints(options.state_dir, endpoints);
  say("ready {} state-dir={}", describe(endpoints), options.state_dir);
  leave.release();
  if (options.demo) {
    try {
      run_demo(options.state_dir, endpoints);
    } catch (const Error& error) {
      log::error("the demonstration failed", {{"error", error.what()}});
    }
  }
  const Ending ending = wait_for_ending(signals, watched);
  endpoint.reset();  // it counts what the API has
  api.reset();       // first: whoever asks it would be told of sandboxes that are about to end
  return end(ending, options, signals);
}

}  // namespace hearth::cli
