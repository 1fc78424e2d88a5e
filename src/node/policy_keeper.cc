#include "node/policy_keeper.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "client/kinds.h"
#include "model/agent_sandbox.h"
#include "model/container_id.h"
#include "model/front_door.h"
#include "node/pod_index.h"
#include "node/pod_policy.h"

namespace hearth::node {
namespace {

using model::text_at;

constexpr Duration kSyncPatience = std::chrono::minutes(1);
// Neighbours come and go by the hundred: once for all of them is enough.
constexpr Duration kPatience = std::chrono::milliseconds(100);
constexpr Duration kMostPatience = std::chrono::seconds(1);
// Before what could not be set is tried again.
constexpr Duration kRetryPause = std::chrono::seconds(1);

// The sandboxes of a pod that run now.
std::set<std::string> running_sandboxes(const Json& pod) {
  std::set<std::string> ids;
  for (const char* kind : {"initContainerStatuses", "containerStatuses"}) {
    const model::JsonArray* all = model::array_at(pod, {"status", kind});
    if (!all) continue;
    for (const Json& status : *all) {
      const std::string_view id = model::sandbox_of_container(text_at(status, {"containerID"}));
      if (model::find(status, {"state", "running"}) && !id.empty()) ids.emplace(id);
    }
  }
  return ids;
}

// Whether others can tell the difference.
bool is_same_neighbour(const Json& before, const Json& now) {
  const auto same = [&](model::Path path) {
    const Json* left = model::find(before, path);
    const Json* right = model::find(now, path);
    return (!left && !right) || (left && right && *left == *right);
  };
  return same({"metadata", "labels"}) && address_of_pod(before) == address_of_pod(now);
}

std::string_view wish_of(const Json& pod) {
  return model::annotation_of(pod, model::kEgressAnnotation);
}

// As the Sandbox's controller will tell its pod; empty for none.
std::string_view wish_for_pod(const Json& sandbox) {
  const std::string_view own = wish_of(sandbox);
  if (!own.empty()) return own;
  return text_at(sandbox,
                 {"spec", "podTemplate", "metadata", "annotations", model::kEgressAnnotation});
}

bool has_names(const Json& pod) {
  if (wish_of(pod).empty()) return false;
  pool::Egress egress = parse_egress(wish_of(pod));
  return !take_names(egress).empty();
}

// Its questions for names do not come to this machine.
bool has_other_name_servers(const Json& pod) {
  return text_at(pod, {"spec", "dnsPolicy"}) == "None";
}

bool is_same_to_us(const Json& before, const Json& now) {
  return is_same_neighbour(before, now) && wish_of(before) == wish_of(now) &&
         running_sandboxes(before) == running_sandboxes(now);
}

}  // namespace

PolicyKeeper::PolicyKeeper(client::Client& client, runtime::Runtime& runtime,
                           client::WatchCache& pods, client::WatchCache& services)
    : client_(client),
      runtime_(runtime),
      pods_(pods),
      services_(services),
      policies_(client, client::kNetworkPolicies),
      namespaces_(client, client::kNamespaces) {
  const auto tell_of = [this](client::WatchCache& cache, bool is_urgent) {
    const auto note = [this, is_urgent](const client::Object&) { note_all(is_urgent); };
    const auto changed = [this, is_urgent](const client::Object& before,
                                           const client::Object& now) {
      const Json* left = model::find(*before, {"spec"});
      const Json* right = model::find(*now, {"spec"});
      if (!left || !right || *left != *right) note_all(is_urgent);
    };
    cache.add_handlers({.on_add = note, .on_update = changed, .on_delete = note});
  };
  tell_of(policies_, /*is_urgent=*/true);
  tell_of(services_, /*is_urgent=*/false);
  namespaces_.add_handlers(
      {.on_add = [this](const client::Object&) { note_all(/*is_urgent=*/true); },
       .on_update =
           [this](const client::Object& before, const client::Object& now) {
             if (!is_same_neighbour(*before, *now)) note_all(/*is_urgent=*/true);
           }});
  pods_.add_handlers({.on_add =
                          [this](const client::Object& now) {
                            note_names(*now);
                            note_pod(*now, true);
                          },
                      .on_update =
                          [this](const client::Object& before, const client::Object& now) {
                            // Else it is not news, and may be older than what was enforced.
                            if (wish_of(*before) != wish_of(*now) ||
                                address_of_pod(*before) != address_of_pod(*now))
                              note_names(*now);
                            if (!is_same_to_us(*before, *now))
                              note_pod(*now, !is_same_neighbour(*before, *now));
                          },
                      .on_delete =
                          [this](const client::Object& last) {
                            named_.forget(model::uid_of(*last));
                            const std::lock_guard lock(mutex_);
                            applied_.erase(std::string(model::uid_of(*last)));
                            has_all_changed_ = true;
                            news_.notify_one();
                          }});
}

void PolicyKeeper::start() {
  policies_.start();
  namespaces_.start();
  for (const client::WatchCache* cache : {&policies_, &namespaces_, &services_, &pods_})
    if (!cache->wait_synced(kSyncPatience))
      fail(Code::timeout, "network policies could not be listed within a minute");
  look_around();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void PolicyKeeper::stop() {
  thread_ = {};
  policies_.stop();
  namespaces_.stop();
}

network::Policy PolicyKeeper::first_policy(const Json& pod) {
  network::Policy policy = policy_of(pod);
  const std::lock_guard lock(mutex_);
  // A container that joins others does not change what is in force for them.
  applied_.try_emplace(std::string(model::uid_of(pod)), Applied{.policy = policy});
  return policy;
}

network::Policy PolicyKeeper::policy_of(const Json& pod) {
  const Around now = around();
  const std::string_view ns = model::namespace_of(pod);
  client::ListOptions options;
  options.ns = ns;
  std::vector<client::Object> fresh;
  for (Json& policy : client_.list_all(client::kNetworkPolicies, options).items)
    fresh.push_back(std::make_shared<const Json>(std::move(policy)));
  return NetworkPolicies(*now.policies, ns, fresh)
      .policy_for(pod, *now.neighbours, named_.answered_to(model::uid_of(pod)));
}

void PolicyKeeper::enforce(const Json& pod, const std::string& sandbox) {
  if (has_other_name_servers(pod) && has_names(pod))
    fail(Code::invalid,
         "pod '{}' asks name servers of its own (dnsPolicy None): hosts cannot be allowed by name",
         model::name_of(pod));
  const std::lock_guard telling(telling_);
  const Json wanted = newest_wish(pod);
  named_.set_rules(wanted);
  const network::Policy policy = policy_of(wanted);
  runtime_.set_policy(sandbox, policy);
  const std::lock_guard lock(mutex_);
  applied_[std::string(model::uid_of(pod))] = {.policy = policy,
                                               .sandboxes = running_sandboxes(pod)};
}

// The pod with what its Sandbox says now. One without, or whose Sandbox may not be read, speaks for
// itself.
Json PolicyKeeper::newest_wish(const Json& pod) {
  const auto owner = model::controller_of(pod);
  if (!owner || owner->kind != "Sandbox" || owner->group() != model::kCoreGroup) return pod;
  std::optional<Json> sandbox;
  try {
    sandbox = client_.find(client::kSandboxes, model::namespace_of(pod), owner->name);
  } catch (const Error& error) {
    if (error.code() != Code::forbidden) throw;
  }
  if (!sandbox || model::uid_of(*sandbox) != owner->uid) return pod;
  Json newest = pod;
  model::JsonObject& annotations = model::make_object_at(newest, {"metadata", "annotations"});
  if (const std::string_view wish = wish_for_pod(*sandbox); wish.empty())
    annotations.erase(model::kEgressAnnotation);
  else
    annotations[model::kEgressAnnotation] = wish;
  return newest;
}

void PolicyKeeper::admit(std::uint32_t address, const std::string& name,
                         std::span<const std::uint32_t> answered) {
  const std::lock_guard telling(telling_);
  if (!named_.learn(address, name, answered)) return;
  const auto asking = named_.find(address);
  const client::Object known =
      asking ? pods_.find(asking->key.ns, asking->key.name) : client::Object();
  if (!known || model::uid_of(*known) != asking->uid)
    fail(Code::not_found, "the pod at {} is gone", network::address_text(address));
  // What the watch shows may be older than what was enforced.
  Json pod = *known;
  model::make_object_at(pod, {"metadata", "annotations"})[model::kEgressAnnotation] =
      asking->egress;
  pod = newest_wish(pod);
  const std::set<std::string> sandboxes = running_sandboxes(pod);
  if (sandboxes.empty()) fail(Code::unavailable, "pod '{}' does not run", model::name_of(pod));
  // Containers of a pod share its network: what is said of one holds for all.
  runtime_.set_policy(*sandboxes.begin(), policy_of(pod));
  named_.note_told(asking->uid);
}

void PolicyKeeper::note_names(const Json& pod) {
  try {
    // Most have none, and nobody needs to be asked about them.
    if (wish_of(pod).empty() && !named_.has_rules(model::uid_of(pod)))
      return named_.forget_others(address_of_pod(pod), model::uid_of(pod));
    const std::lock_guard telling(telling_);
    named_.set_rules(newest_wish(pod));
  } catch (const Error&) {
    // An annotation that makes no sense: the policy before it stands, and so do these.
  }
}

void PolicyKeeper::note_pod(const Json& pod, bool is_neighbourly) {
  const std::lock_guard lock(mutex_);
  changed_.insert(model::key_of(pod));
  // Also of one that ended: others had its address.
  has_all_changed_ |= is_neighbourly && !text_at(pod, {"status", "podIP"}).empty();
  news_.notify_one();
}

void PolicyKeeper::note_all(bool is_urgent) {
  const std::lock_guard lock(mutex_);
  has_all_changed_ = true;
  is_urgent_ |= is_urgent;
  news_.notify_one();
}

PolicyKeeper::Around PolicyKeeper::around() {
  const std::lock_guard lock(mutex_);
  if (!around_.neighbours) fail(Code::unavailable, "the neighbours of pods are not known yet");
  return around_;
}

void PolicyKeeper::look_around() {
  Around now{.policies = std::make_shared<const NetworkPolicies>(policies_.list()),
             .neighbours = std::make_shared<const Neighbourhood>(pods_.list(), namespaces_.list(),
                                                                 services_.list())};
  const std::lock_guard lock(mutex_);
  around_ = std::move(now);
}

void PolicyKeeper::run(const std::stop_token& stop) {
  Instant next_round = std::chrono::steady_clock::now();
  while (true) {
    const auto work = wait_for_work(stop, next_round);
    if (!work) return;
    try {
      if (work->is_for_all) next_round = go_round(work->is_urgent);
      for (const model::Key& key : work->changed)
        if (const client::Object pod = pods_.find(key.ns, key.name)) apply_or_keep(*pod);
    } catch (const std::exception& error) {
      log::error("network policies could not be set; trying again", {{"error", error.what()}});
      std::unique_lock lock(mutex_);
      has_all_changed_ = is_urgent_ = true;
      news_.wait_for(lock, stop, kRetryPause, [] { return false; });
    }
  }
}

std::optional<PolicyKeeper::Work> PolicyKeeper::wait_for_work(const std::stop_token& stop,
                                                              Instant next_round) {
  std::unique_lock lock(mutex_);
  if (!news_.wait(lock, stop, [&] { return !changed_.empty() || has_all_changed_; })) return {};
  news_.wait_until(lock, stop, next_round, [&] { return !changed_.empty() || is_urgent_; });
  if (stop.stop_requested()) return {};
  Work work{.changed = std::exchange(changed_, {})};
  work.is_for_all =
      has_all_changed_ && (is_urgent_ || std::chrono::steady_clock::now() >= next_round);
  if (work.is_for_all) {
    work.is_urgent = is_urgent_;
    has_all_changed_ = is_urgent_ = false;
  }
  return work;
}

// Returns when the next one may be. Where there are many pods, it is not all that we do.
PolicyKeeper::Instant PolicyKeeper::go_round(bool is_urgent) {
  const Instant begin = std::chrono::steady_clock::now();
  const auto is_about_neighbours = [this] {
    const Around now = around();
    return now.policies->is_about_neighbours(*now.neighbours);
  };
  const bool was = is_about_neighbours();
  look_around();
  if (is_urgent || was || is_about_neighbours()) apply_all();
  const Instant end = std::chrono::steady_clock::now();
  return end + std::clamp<Duration>(10 * (end - begin), kPatience, kMostPatience);
}

void PolicyKeeper::apply_all() {
  std::set<std::string, std::less<>> living;
  for (const client::Object& pod : pods_.list()) {
    living.emplace(model::uid_of(*pod));
    apply_or_keep(*pod);
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(applied_, [&](const auto& one) { return !living.contains(one.first); });
}

bool PolicyKeeper::is_in_force(const std::string& uid, const network::Policy& policy,
                               const std::set<std::string>& sandboxes) {
  const std::lock_guard lock(mutex_);
  const auto found = applied_.find(uid);
  if (found == applied_.end() || found->second.policy != policy) return false;
  // One that is as it was made.
  if (found->second.sandboxes.empty() && sandboxes.size() == 1) found->second.sandboxes = sandboxes;
  return found->second.sandboxes == sandboxes;
}

// A pod whose own annotation makes no sense keeps what it has, and holds up nobody else.
void PolicyKeeper::apply_or_keep(const Json& pod) {
  try {
    apply(pod);
  } catch (const Error& error) {
    if (error.code() != Code::invalid) throw;
    log::warning("a pod keeps its network policy",
                 {{"pod", model::key_of(pod).text()}, {"error", error.what()}});
  }
}

void PolicyKeeper::apply(const Json& pod) {
  const std::set<std::string> sandboxes = running_sandboxes(pod);
  const std::string uid(model::uid_of(pod));
  if (sandboxes.empty()) return;
  const Around known = around();
  const network::Policy expected =
      known.policies->policy_for(pod, *known.neighbours, named_.answered_to(uid));
  if (is_in_force(uid, expected, sandboxes)) return;
  const std::lock_guard telling(telling_);
  // What we know may be older than what the pod began with, or was told since: nothing is loosened
  // by mistake.
  const network::Policy policy = policy_of(newest_wish(pod));
  if (is_in_force(uid, policy, sandboxes)) return;
  for (const std::string& id : sandboxes) {
    try {
      runtime_.set_policy(id, policy);
    } catch (const Error& error) {
      // Gone by now, or without a network.
      if (error.code() != Code::not_found && error.code() != Code::invalid) throw;
    }
  }
  const std::lock_guard lock(mutex_);
  applied_[uid] = {.policy = policy, .sandboxes = sandboxes};
}

}  // namespace hearth::node
