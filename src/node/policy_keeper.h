// Keeps the network policies of this node's pods as NetworkPolicies, Services and neighbours say.
//
// A pod begins with the right one: first_policy() asks the API for the NetworkPolicies of its
// namespace, since a watch may be behind whoever made both. Changes follow on a thread of its own:
// those of a policy or of the pod itself at once, those of its neighbours some at a time.
//
// Whom a Sandbox's pod may reach is said to the Sandbox. Its pod hears of it later, perhaps of
// several such words one after the other, when the newest is in force already. So the Sandbox is
// asked before anything is put in force: an older word never takes the place of a newer one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "client/watch_cache.h"
#include "model/meta.h"
#include "network/policy.h"
#include "node/named_hosts.h"
#include "node/network_policy.h"
#include "runtime/runtime.h"

namespace hearth::node {

class PolicyKeeper {
 public:
  // All must outlive it. The caches are not started yet; whoever made them starts them.
  PolicyKeeper(client::Client& client, runtime::Runtime& runtime, client::WatchCache& pods,
               client::WatchCache& services);
  PolicyKeeper(const PolicyKeeper&) = delete;
  PolicyKeeper& operator=(const PolicyKeeper&) = delete;
  ~PolicyKeeper() { stop(); }

  // When the caches have synced. Throws Error(timeout).
  void start();
  // Idempotent.
  void stop();

  // For a container that is about to be made. Throws Error, also StatusError.
  network::Policy first_policy(const Json& pod);
  // At once, by what the pod, or its Sandbox, and the NetworkPolicies that the API has now say.
  // Error(invalid) for rules by name of a pod that asks others for names. Thread-safe. Throws
  // Error, also StatusError.
  void enforce(const Json& pod, const std::string& sandbox);

  // Hosts by name, for whoever answers names: whether the pod at this address may ask for it, and
  // that it may reach what it is about to be answered. Thread-safe. admit() throws Error.
  NameRuling judge(std::uint32_t address, std::string_view name) const {
    return named_.judge(address, name);
  }
  void admit(std::uint32_t address, const std::string& name,
             std::span<const std::uint32_t> answered);

 private:
  using Instant = std::chrono::steady_clock::time_point;
  struct Work {
    std::set<model::Key> changed;
    bool is_for_all = false;
    bool is_urgent = false;
  };
  // As it was when somebody looked.
  struct Around {
    std::shared_ptr<const NetworkPolicies> policies;
    std::shared_ptr<const Neighbourhood> neighbours;
  };
  // What is in force, as far as we know.
  struct Applied {
    network::Policy policy;
    std::set<std::string> sandboxes;  // empty: of those that are being made
  };

  network::Policy policy_of(const Json& pod);
  Json newest_wish(const Json& pod);
  void note_names(const Json& pod);
  void note_pod(const Json& pod, bool is_neighbourly);
  void note_all(bool is_urgent);
  void run(const std::stop_token& stop);
  std::optional<Work> wait_for_work(const std::stop_token& stop, Instant next_round);
  Instant go_round(bool is_urgent);
  void look_around();
  void apply_all();
  void apply_or_keep(const Json& pod);
  void apply(const Json& pod);
  bool is_in_force(const std::string& uid, const network::Policy& policy,
                   const std::set<std::string>& sandboxes);
  Around around();

  client::Client& client_;
  runtime::Runtime& runtime_;
  client::WatchCache& pods_;
  client::WatchCache& services_;
  client::WatchCache policies_;
  client::WatchCache namespaces_;
  NamedHosts named_;
  // From making a policy until the runtime has it: what one was answered is not lost by another's
  // older knowledge.
  std::mutex telling_;

  std::mutex mutex_;  // guards what follows, down to the thread
  std::condition_variable_any news_;
  std::set<model::Key> changed_;
  bool has_all_changed_ = false;  // neighbours may mean something else for everybody
  bool is_urgent_ = false;
  Around around_;
  std::map<std::string, Applied, std::less<>> applied_;  // by the pod's uid
  std::jthread thread_;
};

}  // namespace hearth::node
