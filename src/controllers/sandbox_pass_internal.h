// One pass over one Sandbox: look, act, tell. Used by SandboxReconciler alone.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "client/client.h"
#include "controllers/options.h"
#include "controllers/own_writes.h"
#include "controllers/sandbox_conditions.h"
#include "controllers/sandbox_metrics.h"
#include "controllers/sandbox_reconciler.h"
#include "reconcile/event_recorder.h"
#include "tracing/tracer.h"

namespace hearth::controllers {

using client::Object;
using model::JsonObject;
using model::Key;

inline constexpr char kSandboxManager[] = "sandbox-controller";  // of fields
inline constexpr std::string_view kPodsByNameHash = "sandbox-name-hash";
// Whatever people ask for.
inline constexpr Duration kLongestDeferral = std::chrono::seconds(1);

// Writes that may wait a little for more to go with them: since when each key has one. Losing it
// costs nothing but the wait.
class Deferral {
 public:
  // What is left of the window that the first call opened; zero: it is due.
  Duration left(const Key& key, Duration window, Time now);
  void clear(const Key& key);

 private:
  std::mutex mutex_;  // guards since_
  std::map<Key, Time> since_;
};

// Pods that failed and are to be made again.
class Failures {
 public:
  // How long to wait before this pod goes; zero: now.
  Duration left(const Key& key, const Json& pod, Time now);
  void forget(const Key& key);

 private:
  struct Failed {
    std::string pod_uid;
    unsigned count = 0;  // in a row
    Time due;
  };
  std::mutex mutex_;  // guards failed_
  std::map<Key, Failed> failed_;
};

// What passes share.
struct SandboxTools {
  client::Client& client;
  SandboxCaches caches;
  const Clock& clock;
  reconcile::EventRecorder& events;
  const Options& options;

  OwnWrites sandboxes{clock};
  OwnWrites pods{clock};
  OwnWrites services{clock};
  Deferral pod_metadata = {};
  Deferral transitional_status = {};
  Failures failures = {};
  SandboxTransitions transitions{nullptr};

  void forget(const Key& key);
};

class SandboxPass {
 public:
  // `span` is of the whole pass.
  SandboxPass(SandboxTools& tools, Object sandbox, const tracing::Span& span);

  // Throws Error when a step failed; the status tells of it.
  reconcile::Next run();

 private:
  // Expiry.
  reconcile::Next mark_expired();
  reconcile::Next tear_down();

  // Children. The steps throw what they meet; keep_children() collects it.
  void keep_children();
  void keep_volumes();
  Object keep_pod();
  Object keep_service();

  std::vector<Object> owned_pods() const;
  // Also asks the server, where the cache has none and `is_sure` says that it matters.
  Object find_pod(std::string_view name, bool is_sure) const;
  Object choose_pod();
  Object suspend(const Object& pod);
  Object keep_running(const Object& pod);
  Object create_pod();
  Object keep_metadata(const Object& pod, bool is_owned);
  void recreate_failed(const Json& pod);
  void remove_pod(const Json& pod);

  Object find_service() const;
  Object create_service();
  Object keep_existing_service(const Object& service);
  void remove_service(const Json& service);

  // An empty name: no annotation.
  void set_pod_annotation(std::string_view pod_name);
  void set_trace_annotation();
  void set_annotation(std::string_view key, const Json& value, std::string_view what);
  void tell_of_pod();
  void tell_of_service();
  void tell_of_multiple_pods();

  void write_status();
  bool is_worth_writing() const;
  bool is_transitional() const;
  Duration status_window() const;
  JsonArray& conditions();
  void throw_errors() const;
  void look_again_after(Duration time);
  Time now() const { return tools_.clock.now(); }

  SandboxTools& tools_;
  Object sandbox_;
  const tracing::Span& span_;
  const Key key_;
  const Json old_status_;  // an object
  JsonObject status_;
  Object pod_;
  Object service_;
  Seen seen_;
  reconcile::Next next_ = reconcile::kWhenChanged;
};

}  // namespace hearth::controllers
