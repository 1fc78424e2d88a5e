#include "controllers/warm_pool_reconciler.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "client/kinds.h"
#include "controllers/pool_index.h"
#include "model/agent_sandbox.h"
#include "model/names.h"
#include "model/template_ref.h"

namespace hearth::controllers {
namespace {

using model::JsonArray;
using model::JsonObject;
using reconcile::EventType;
using reconcile::Next;

// While expectations are open events wake the pool; this is for events that were lost.
constexpr Duration kExpectationsRecheck = std::chrono::seconds(30);
// How often members are counted while nothing can be made anyway, for the status, and those of a
// large pool at most.
constexpr Duration kCountPause = std::chrono::milliseconds(50);
// A member that changed while it was judged is judged again when the cache has caught up.
constexpr Duration kConflictPause = std::chrono::milliseconds(20);

// Every claim wakes the pool that it took from. One that is large counts its members once for those
// of a while, and spends no more than a tenth of a processor on it.
constexpr std::size_t kLargePool = 256;
constexpr int kRestPerCount = 9;
constexpr Duration kLongestRest = std::chrono::milliseconds(250);  // a slow machine fills up, too

constexpr unsigned kNameAttempts = 8;

void sooner(Next& next, Duration pause) {
  next = std::min(next.value_or(pause), pause);
}

// Pools that were filled together must not all look again in the same moment.
Duration jittered(Duration pause) {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::uniform_real_distribution<double> part(1, 1.5);
  return std::chrono::duration_cast<Duration>(pause * part(random));
}

// As Go writes it: 5m0s, 1h0m0s, 30s.
std::string go_duration(Duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{}s", seconds / 60, seconds % 60);
  return fmt::format("{}h{}m{}s", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

// Named here and not by the server: so the name of its pod, which is the same, is on it from the
// start and need not be written later.
Json named(Json member) {
  // Copies: whoever adds to an object moves what is in it.
  std::string name(model::name_of(member));
  if (name.empty())
    name = model::generate_name(model::text_at(member, {"metadata", "generateName"}));
  model::make_object_at(member, {"metadata"})["name"] = name;
  model::make_object_at(member, {"metadata", "annotations"})[model::kPodNameAnnotation] = name;
  return member;
}

}  // namespace

struct WarmPoolReconciler::Memory {
  explicit Memory(const Options& options)
      : hold(options.replenish_delay), bucket(options.most_refill_rate) {}

  ReplenishHold hold;
  RefillBucket bucket;
  bool is_known_not_to_progress = false;
  std::chrono::steady_clock::time_point last_pass;
  Duration rest{};          // after the last pass
  Object sandbox_template;  // whose blueprint this is
  Blueprint blueprint;
};

// One look at one pool. Failures of single calls do not keep the others from being made; the first
// of them comes out at the end, and the key is tried again.
class WarmPoolReconciler::Pass {
 public:
  Pass(WarmPoolReconciler& all, const model::Key& key, const Object& pool)
      : all_(all),
        key_(key),
        pool_(*pool),
        memory_(all.memory_of(key)),
        now_(all.clock_.now()),
        desired_(desired_replicas(pool_)) {}

  Next run() {
    if (const Next pause = pause_before_counting()) return pause;
    find_template();
    make_plan();
    tidy();
    const Json status = pool_status(pool_, plan_);
    refill();
    remove_excess();
    tell_progress();
    if (plan_.next_deadline) sooner(next_, jittered(*plan_.next_deadline));
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    tell_status(status);
    return next_;
  }

 private:
  // Each of our own creates and deletes comes back as an event that wakes the pool. Counting all
  // members for every one of them would be work for nothing: until the last has come nothing is
  // done.
  Next pause_before_counting() {
    const auto moment = std::chrono::steady_clock::now();
    const Duration since = moment - memory_.last_pass;
    if (since < memory_.rest) return memory_.rest - since;
    if (since < kCountPause && !all_.expectations_.are_met(key_)) return kCountPause - since;
    memory_.last_pass = moment;
    return std::nullopt;
  }

  void find_template() {
    const model::Key wanted = model::template_key_of(pool_);
    template_ = all_.caches_.templates.find(wanted.ns, wanted.name);
    if (template_ != nullptr && !model::is_usable_from(key_.ns, *template_)) template_ = nullptr;
    // What another namespace lets nobody use any more does not wait for anybody either.
    if (template_ == nullptr && wanted.ns != key_.ns) desired_ = 0;
    if (template_ == nullptr || template_ == memory_.sandbox_template) return;
    memory_.sandbox_template = template_;
    memory_.blueprint = blueprint_of(*template_);
  }

  void make_plan() {
    // Asked before the members are read: what arrives in between would be met and not counted.
    may_trust_count_ = all_.expectations_.are_met(key_);
    const std::vector<Object> members = members_of(all_.caches_.sandboxes, key_);
    plan_ = plan_pool({.pool = pool_,
                       .sandbox_template = template_.get(),
                       .blueprint = &memory_.blueprint,
                       .members = members,
                       .now = now_,
                       .readiness_grace = all_.options_.readiness_grace,
                       .is_ending = [this](std::string_view uid) {
                         return all_.expectations_.expects_deletion_of(key_, uid);
                       }});
    const Duration took = std::chrono::steady_clock::now() - memory_.last_pass;
    memory_.rest = members.size() < kLargePool
                       ? Duration::zero()
                       : std::clamp<Duration>(kRestPerCount * took, kCountPause, kLongestRest);
  }

  // What is wrong with single members, before they are counted.
  void tidy() {
    for (const Object& orphan : plan_.adopt) keep_if([&] { adopt(*orphan); }, orphan);
    for (const Object& member : plan_.mark) keep_if([&] { mark(*member); }, member);
    replace();
  }

  // Until they are gone they take room, and so do those that could not be ended.
  void replace() {
    std::atomic<std::uint32_t> taking_room = 0;
    for (const Object& member : plan_.replace)
      if (is_ours(*member)) ++taking_room;
    const SlowStart ended = run_slow_start(static_cast<std::uint32_t>(plan_.replace.size()),
                                           all_.options_.refill_threads, [&](std::uint32_t index) {
                                             const Json& member = *plan_.replace[index];
                                             if (end_member(member) == End::gone && is_ours(member))
                                               --taking_room;
                                           });
    plan_.terminating += taking_room;
    note(ended.first_failure);
  }

  bool is_ours(const Json& member) const {
    return model::is_controlled_by(member, model::uid_of(pool_));
  }

  // With the version that was judged: somebody may have claimed it meanwhile.
  void patch(const Json& member, JsonObject metadata) {
    metadata["resourceVersion"] = model::resource_version_of(member);
    all_.client_.patch(client::kSandboxes, key_.ns, model::name_of(member),
                       client::PatchKind::merge, JsonObject{{"metadata", std::move(metadata)}});
  }

  void mark(const Json& member) {
    patch(member, {{"labels", JsonObject{{model::kLaunchTypeLabel, "warm"}}}});
  }

  void adopt(const Json& orphan) {
    const JsonArray* present = model::array_at(orphan, {"metadata", "ownerReferences"});
    JsonArray owners = present != nullptr ? *present : JsonArray();
    owners.push_back(model::controller_reference(pool_));
    patch(orphan, {{"ownerReferences", std::move(owners)},
                   {"labels", JsonObject{{model::kLaunchTypeLabel, "warm"}}}});
  }

  enum class End { asked, gone, changed };

  End end_member(const Json& member) {
    const std::string uid(model::uid_of(member));
    // Events of orphans do not lead back to the pool, so nothing is expected of them.
    const bool is_expected = is_ours(member);
    if (is_expected) all_.expectations_.expect_deletion(key_, uid);
    try {
      all_.client_.remove(
          client::kSandboxes, key_.ns, model::name_of(member),
          {.uid = uid, .resource_version = std::string(model::resource_version_of(member))});
      return End::asked;
    } catch (const Error& error) {
      if (is_expected) all_.expectations_.deletion_seen(key_, uid);
      if (error.code() == Code::not_found) return End::gone;
      if (error.code() != Code::conflict) throw;
      is_outdated_ = true;
      return End::changed;
    }
  }

  void refill() {
    const auto active = static_cast<std::uint32_t>(plan_.active.size());
    const Duration hold = memory_.hold.observe(active, desired_, now_);
    if (template_ == nullptr) return;
    // Asked of the active ones: while those that left are still ending, the hold goes on.
    if (hold > Duration::zero() && active < desired_) return sooner(next_, hold);
    if (active + plan_.terminating >= desired_) return;
    const std::uint32_t missing = desired_ - active - plan_.terminating;
    const std::uint32_t deficit = std::min(missing, all_.options_.most_batch);
    if (deficit < missing) memory_.rest = Duration::zero();  // the next ones follow at once
    const RefillBucket::Grant grant = memory_.bucket.take(deficit, now_);
    // Where some are granted their events bring the next pass.
    if (grant.count == 0) return sooner(next_, grant.wait);
    if (!may_trust_count_ || !all_.expectations_.expect_creations(key_, grant.count)) {
      memory_.bucket.give_back(grant.count);
      return sooner(next_, kExpectationsRecheck);
    }
    create(grant.count);
  }

  void create(std::uint32_t count) {
    const SlowStart made = run_slow_start(count, all_.options_.refill_threads,
                                          [this](std::uint32_t) { create_one(); });
    // Those never come.
    for (std::uint32_t i = made.succeeded; i < count; ++i) all_.expectations_.creation_seen(key_);
    memory_.hold.created(made.succeeded);
    note(made.first_failure);
  }

  // A name that is taken already is replaced by another, as the server does with those that it
  // makes: of five hundred members one in a hundred pools meets one.
  void create_one() {
    for (unsigned left = kNameAttempts; left > 0; --left) {
      try {
        all_.client_.create(
            client::kSandboxes,
            named(make_member(pool_, memory_.blueprint, all_.options_.warm_pool_eviction)));
        return;
      } catch (const model::StatusError& error) {
        if (error.status().reason != "AlreadyExists" || left == 1) throw;
      }
    }
  }

  void remove_excess() {
    if (plan_.active.size() <= desired_) return;
    // A count from before the last writes may find too many where there are none.
    if (!may_trust_count_ || !all_.expectations_.are_met(key_))
      return sooner(next_, kExpectationsRecheck);
    const std::size_t excess =
        std::min<std::size_t>(plan_.active.size() - desired_, all_.options_.most_batch);
    const std::vector<Object> members = least_missed(plan_.active, excess);
    const SlowStart ended =
        run_slow_start(static_cast<std::uint32_t>(members.size()), all_.options_.refill_threads,
                       [&](std::uint32_t index) { end_member(*members[index]); });
    note(ended.first_failure);
  }

  void tell_progress() {
    const bool is_held_up = plan_.unschedulable > 0;
    if (is_held_up) sooner(next_, all_.options_.unschedulable_recheck);
    if (is_outdated_) sooner(next_, kConflictPause);
    if (is_held_up == memory_.is_known_not_to_progress) return;
    memory_.is_known_not_to_progress = is_held_up;
    if (is_held_up)
      all_.events_.record(
          pool_, EventType::warning, "WarmPoolNotProgressing", "Reconciling",
          fmt::format("{}/{} sandboxes are unschedulable past the {} readiness grace period; "
                      "holding them instead of replacing (replacements would be equally "
                      "unschedulable)",
                      plan_.unschedulable, desired_, go_duration(all_.options_.readiness_grace)));
    else
      all_.events_.record(pool_, EventType::normal, "WarmPoolProgressing", "Reconciling",
                          "Warm pool is progressing again");
  }

  void tell_status(const Json& status) {
    if (has_status(pool_, status))
      all_.status_writer_.settled(key_);
    else
      all_.status_writer_.want(key_, status);
  }

  template <typename F>
  bool attempt(F act) {
    try {
      act();
      return true;
    } catch (const Error&) {
      note(std::current_exception());
      return false;
    }
  }

  // A member that could not be made ours is not counted.
  template <typename F>
  void keep_if(F act, const Object& member) {
    if (attempt(act)) return;
    std::erase(plan_.active, member);
    if (model::is_condition_true(*member, "Ready")) --plan_.ready;
  }

  void note(const std::exception_ptr& failure) {
    if (failure_ == nullptr) failure_ = failure;
  }

  WarmPoolReconciler& all_;
  const model::Key& key_;
  const Json& pool_;
  Memory& memory_;
  const Time now_;
  std::uint32_t desired_;
  Object template_;
  PoolPlan plan_;
  bool may_trust_count_ = false;
  std::atomic<bool> is_outdated_ = false;
  std::exception_ptr failure_;
  Next next_ = reconcile::kWhenChanged;
};

WarmPoolReconciler::WarmPoolReconciler(client::Client& client, WarmPoolCaches caches,
                                       const Clock& clock, reconcile::EventRecorder& events,
                                       const Options& options)
    : client_(client),
      caches_(caches),
      clock_(clock),
      events_(events),
      options_(options),
      expectations_(clock),
      status_writer_(client) {}

WarmPoolReconciler::~WarmPoolReconciler() = default;

Next WarmPoolReconciler::reconcile(const model::Key& key) {
  const Object pool = caches_.pools.find(key.ns, key.name);
  if (pool == nullptr || model::is_deleting(*pool)) {
    // The garbage collector follows with the members.
    forget(key);
    return reconcile::kWhenChanged;
  }
  return Pass(*this, key, pool).run();
}

WarmPoolReconciler::Memory& WarmPoolReconciler::memory_of(const model::Key& key) {
  const std::lock_guard lock(mutex_);
  auto& memory = memories_[key];
  if (memory == nullptr) memory = std::make_unique<Memory>(options_);
  return *memory;
}

void WarmPoolReconciler::forget(const model::Key& key) {
  expectations_.forget(key);
  status_writer_.forget(key);
  const std::lock_guard lock(mutex_);
  memories_.erase(key);
}

}  // namespace hearth::controllers
