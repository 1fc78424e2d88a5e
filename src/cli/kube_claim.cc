// `hearth claim`: a sandbox from a pool, and perhaps a command in it.
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "base/on_failure.h"
#include "base/time_text.h"
#include "cli/command.h"
#include "cli/kube_text.h"
#include "client/http_client.h"
#include "client/kinds.h"
#include "linux/fd.h"
#include "model/agent_sandbox.h"
#include "model/container_id.h"
#include "model/meta.h"

namespace hearth::cli {
namespace {

using model::Json;
using model::text_at;
using std::chrono::steady_clock;

// What no amount of waiting mends: the claim is as it is, or what it names is not there.
constexpr std::array<std::string_view, 11> kLostReasons = {
    "WarmPoolNotFound", "TemplateNotFound",
    "WarmPoolEmpty",    "EnvVarsInjectionRejected",
    "InvalidMetadata",  "VolumeClaimTemplatesError",
    "ClaimExpired",     "SandboxExpired",
    "PodFailed",        "PodSucceeded",
    "MultiplePods"};

std::pair<std::string, std::string> split_at_equals(const std::string& text) {
  const std::size_t equals = text.find('=');
  return {text.substr(0, equals), text.substr(equals + 1)};
}

model::JsonObject lifecycle_of(Duration ttl, Time now) {
  const Time end = std::chrono::ceil<std::chrono::seconds>(now + ttl);
  return {{"shutdownTime", format_rfc3339(end)}, {"shutdownPolicy", "Delete"}};
}

// Ends a wait when its time is over, or when we are asked to end.
class Patience {
 public:
  Patience(Signals& signals, Duration time)
      : deadline_(Deadline::after(time)),
        pipe_(linux::make_pipe()),
        thread_([this, &signals] { run(signals); }) {}
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  ~Patience() {
    pipe_.write.reset();  // the thread hears of it
    thread_.join();
  }

  std::stop_token token() const { return stop_.get_token(); }
  // That ended the wait; 0: none.
  int signal() const { return signal_; }

 private:
  void run(Signals& signals) {
    while (!deadline_.passed()) {
      std::array<pollfd, 2> waiting = {{{.fd = signals.fd(), .events = POLLIN, .revents = 0},
                                        {.fd = pipe_.read.get(), .events = POLLIN, .revents = 0}}};
      ::poll(waiting.data(), waiting.size(), deadline_.poll_milliseconds());
      if (waiting[1].revents != 0) return;
      const auto signal = signals.next();
      if (!signal || *signal == SIGWINCH) continue;
      signal_ = *signal;
      break;
    }
    stop_.request_stop();
  }

  const Deadline deadline_;
  linux::Pipe pipe_;
  std::stop_source stop_;
  std::atomic<int> signal_ = 0;
  std::thread thread_;
};

// Thrown for a signal; what was made is undone on the way.
struct Interrupted {
  int signal;
};

class Claiming {
 public:
  Claiming(const ClaimOptions& options, Signals& signals)
      : options_(options), signals_(signals), cluster_(options.cluster) {}

  int run() {
    const auto begin = steady_clock::now();
    claim_ = cluster_.api->create(client::kSandboxClaims,
                                  make_claim(options_, cluster_.ns, SystemClock().now()), {});
    if (options_.wait == Duration::zero()) return say_name();
    {
      OnFailure undo([&] {
        if (!options_.keep) remove();
      });
      wait();
      undo.release();
    }
    took_ = steady_clock::now() - begin;
    return options_.has_command ? run_command_in_it() : report();
  }

 private:
  std::string name() const { return std::string(model::name_of(claim_)); }

  int say_name() const {
    std::fputs((name() + "\n").c_str(), stdout);
    return 0;
  }

  void remove() {
    cluster_.api->remove(client::kSandboxClaims, cluster_.ns, name(),
                         {.uid = std::string(model::uid_of(claim_))});
  }

  void wait() {
    Patience patience(signals_, options_.wait);
    client::WatchOptions watch{.ns = cluster_.ns, .field_selector = "metadata.name=" + name()};
    while (!is_settled() && !patience.token().stop_requested()) {
      watch.resource_version = std::string(model::resource_version_of(claim_));
      std::stop_source settled;
      const std::stop_callback over(patience.token(), [&] { settled.request_stop(); });
      const auto end = cluster_.api->watch(
          client::kSandboxClaims, watch,
          [&](const client::Event& event) {
            take(event);
            if (is_settled()) settled.request_stop();
          },
          settled.get_token());
      if (end == client::WatchEnd::expired)
        claim_ = cluster_.api->get(client::kSandboxClaims, cluster_.ns, name());
    }
    if (patience.signal() != 0) throw Interrupted{patience.signal()};
    judge();
  }

  void take(const client::Event& event) {
    if (event.kind == client::EventKind::bookmark) return;
    if (event.kind == client::EventKind::deleted)
      fail(Code::unavailable, "somebody deleted the claim '{}' meanwhile", name());
    claim_ = *event.object;
  }

  bool is_settled() const { return read_claim(claim_).kind != ClaimState::Kind::pending; }

  // Throws unless there is a sandbox.
  void judge() const {
    const ClaimState state = read_claim(claim_);
    if (state.kind == ClaimState::Kind::ready) return;
    const std::string why = state.reason.empty()
                                ? "no controller has looked at it"
                                : fmt::format("{}: {}", state.reason, state.message);
    std::string after;
    if (state.reason == "WarmPoolNotFound") after = "; 'hearth pool ls -A' lists them";
    if (options_.keep) after = fmt::format("; 'hearth describe claim {}' tells more", name());
    if (state.kind == ClaimState::Kind::lost)
      fail(Code::unavailable, "no sandbox of the pool '{}': {}{}", options_.pool, why, after);
    fail(Code::timeout, "no sandbox of the pool '{}' within {}: {}{}", options_.pool,
         format_age(options_.wait), why, after);
  }

  Json get_sandbox() {
    return cluster_.api->get(client::kSandboxes, cluster_.ns,
                             text_at(claim_, {"status", "sandbox", "name"}));
  }

  std::string address() const {
    const model::JsonArray* all = model::array_at(claim_, {"status", "sandbox", "podIPs"});
    if (all == nullptr || all->empty() || !all->front().is_string()) return "-";
    return std::string(all->front().as_string());
  }

  int report() {
    if (options_.format == ObjectFormat::name) return say_name();
    const std::string sandbox(text_at(claim_, {"status", "sandbox", "name"}));
    const auto milliseconds = std::chrono::round<std::chrono::milliseconds>(took_).count();
    const std::string took = fmt::format("{} ms", milliseconds);
    Row heading = {"CLAIM", "SANDBOX", "ADDRESS", "TOOK"};
    Row row = {name(), sandbox, address(), took};
    if (options_.format != ObjectFormat::table) {
      const Json object = get_sandbox();
      const std::string launch(model::label_of(object, model::kLaunchTypeLabel));
      const std::string node(text_at(object, {"status", "nodeName"}));
      if (options_.format == ObjectFormat::json) {
        const Json json = model::JsonObject{{"claim", name()},
                                            {"namespace", cluster_.ns},
                                            {"sandbox", sandbox},
                                            {"address", address()},
                                            {"launch", launch},
                                            {"node", node},
                                            {"milliseconds", milliseconds}};
        std::fputs((model::to_pretty_text(json) + "\n").c_str(), stdout);
        return 0;
      }
      heading.insert(heading.end(), {"LAUNCH", "NODE"});
      row.insert(row.end(), {launch, node});
    }
    std::fputs(format_table(heading, {row}).c_str(), stdout);
    return 0;
  }

  // What the runtime of this machine calls the first container of the sandbox's pod.
  std::string find_container() {
    const Json sandbox = get_sandbox();
    const std::string_view named = model::annotation_of(sandbox, model::kPodNameAnnotation);
    const std::string pod_name(named.empty() ? model::name_of(sandbox) : named);
    const Json pod = cluster_.api->get(client::kPods, cluster_.ns, pod_name);
    const model::JsonArray* all = model::array_at(pod, {"status", "containerStatuses"});
    const std::string_view id =
        all == nullptr || all->empty() ? "" : text_at(all->front(), {"containerID"});
    const std::string_view ours = model::sandbox_of_container(id);
    if (ours.empty())
      fail(Code::unavailable, "the pod '{}' has no container on this machine: its id is '{}'",
           pod_name, id);
    return std::string(ours);
  }

  int run_command_in_it() {
    const ExecOptions exec{.state_dir = options_.cluster.state_dir,
                           .id = find_container_or_remove(),
                           .command = options_.command};
    OnFailure undo([&] {
      if (options_.remove) remove();
    });
    const int code = run_in_sandbox("claim", exec, signals_);
    undo.release();
    if (options_.remove)
      remove();
    else
      complain("claim", fmt::format("the sandbox stays; 'hearth claim delete {}' ends it", name()));
    return code;
  }

  std::string find_container_or_remove() {
    OnFailure undo([&] {
      if (options_.remove) remove();
    });
    std::string id = find_container();
    undo.release();
    return id;
  }

  const ClaimOptions& options_;
  Signals& signals_;
  Cluster cluster_;
  Json claim_;
  steady_clock::duration took_{};
};

}  // namespace

Json make_claim(const ClaimOptions& options, const std::string& ns, Time now) {
  model::JsonObject metadata{{"namespace", ns}};
  if (options.name.empty())
    metadata["generateName"] = options.pool + "-";
  else
    metadata["name"] = options.name;
  model::JsonObject labels;
  for (const std::string& label : options.labels) {
    const auto [key, value] = split_at_equals(label);
    labels[key] = value;
  }
  if (!labels.empty()) metadata["labels"] = std::move(labels);

  model::JsonObject spec{{"warmPoolRef", model::JsonObject{{"name", options.pool}}}};
  model::JsonArray environment;
  for (const std::string& entry : options.environment) {
    const auto [key, value] = split_at_equals(entry);
    environment.push_back(model::JsonObject{{"name", key}, {"value", value}});
  }
  if (!environment.empty()) spec["env"] = std::move(environment);
  if (options.ttl) spec["lifecycle"] = lifecycle_of(*options.ttl, now);
  if (!options.when_empty.empty()) spec["whenEmpty"] = options.when_empty;
  // Who stands in line for us gives up soon after us; that wait counts from a whole second.
  if (options.when_empty == "Wait" && options.wait > Duration::zero())
    spec["waitSeconds"] = std::chrono::ceil<std::chrono::seconds>(options.wait).count() + 1;
  return model::JsonObject{{"apiVersion", client::kSandboxClaims.api_version()},
                           {"kind", "SandboxClaim"},
                           {"metadata", std::move(metadata)},
                           {"spec", std::move(spec)}};
}

ClaimState read_claim(const Json& claim) {
  ClaimState state;
  const Json* ready = model::find_condition(claim, "Ready");
  if (ready == nullptr) return state;
  state.reason = text_at(*ready, {"reason"});
  state.message = text_at(*ready, {"message"});
  if (text_at(*ready, {"status"}) == "True") {
    state.kind = ClaimState::Kind::ready;
  } else if (std::ranges::find(kLostReasons, state.reason) != kLostReasons.end() ||
             model::is_condition_true(claim, "Finished")) {
    state.kind = ClaimState::Kind::lost;
  }
  return state;
}

int claim(const ClaimOptions& options) {
  Signals signals = make_command_signals();
  try {
    return Claiming(options, signals).run();
  } catch (const Interrupted& interrupted) {
    return kExitSignalBase + interrupted.signal;
  } catch (const Error& error) {
    // A command's own exit code is never taken for ours.
    if (!options.has_command) throw;
    complain("claim", error.what());
    return kExitEngine;
  }
}

}  // namespace hearth::cli
