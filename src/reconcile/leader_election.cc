#include "reconcile/leader_election.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <random>
#include <thread>

#include "base/cancel.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/time_text.h"
#include "client/kinds.h"

namespace hearth::reconcile {
namespace {

using Moment = std::chrono::steady_clock::time_point;

// A lease that claims to be good for longer is not believed.
constexpr std::int64_t kMostSeconds = 3600;

Moment now() {
  return std::chrono::steady_clock::now();
}

std::string wall_time() {
  return format_rfc3339(std::chrono::system_clock::now(), 6);
}

std::string made_up_identity() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return std::string(host.data()) + "_" + random_hex(8);
}

std::int64_t seconds_of(Duration time) {
  return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(time).count());
}

// Candidates that started together do not ask together.
Duration jittered(Duration time) {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::uniform_real_distribution<double> factor(1.0, 1.2);
  return std::chrono::duration_cast<Duration>(time * factor(random));
}

}  // namespace

// What the threads of one time as leader tell each other.
struct LeaderElection::Tenure {
  std::mutex mutex;  // guards the rest
  std::condition_variable_any changed;
  Moment renewed;
  bool is_lost = false;
  bool is_taken = false;  // and that is how it was lost: somebody else holds it
  bool is_over = false;   // `lead` has returned
};

LeaderElection::LeaderElection(client::Client& client, LeaderElectionOptions options)
    : client_(client), options_(std::move(options)) {
  if (options_.identity.empty()) options_.identity = made_up_identity();
}

bool LeaderElection::run(const std::function<void(const std::stop_token& lost)>& lead,
                         const std::stop_token& stop) {
  Tenure tenure;
  if (!wait_for_lease(tenure, stop)) return true;
  is_leader_ = true;
  log::info("leading", {{"lease", options_.lease.text()}, {"identity", options_.identity}});
  std::exception_ptr failure;
  {
    std::jthread overrun;  // outlives the other two
    const std::jthread renewing([&](const std::stop_token& end) { renew(tenure, end); });
    std::jthread leading([&](const std::stop_token& lost) {
      try {
        lead(lost);
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(tenure.mutex);
      tenure.is_over = true;
      tenure.changed.notify_all();
    });
    watch_over(tenure, stop);
    if (const auto left = time_after_loss(tenure); left && options_.on_overrun)
      overrun = std::jthread([&, left](const std::stop_token& in_time) {
        if (sleep_for(in_time, *left)) options_.on_overrun();
      });
    leading.request_stop();
    // While it winds up it still acts: the lease is renewed meanwhile.
    leading.join();
  }
  is_leader_ = false;
  if (tenure.is_lost) {
    why_lost_ = tenure.is_taken ? "another process holds it now" : "it was not renewed in time";
    log::warning("the lease was lost", {{"lease", options_.lease.text()}, {"reason", why_lost_}});
  } else {
    give_up();
  }
  if (failure) std::rethrow_exception(failure);
  return !tenure.is_lost;
}

// False: stopped first.
bool LeaderElection::wait_for_lease(Tenure& tenure, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    tenure.renewed = now();
    if (try_to_hold() == Attempt::held) return true;
    if (!sleep_for(stop, jittered(options_.retry))) return false;
  }
  return false;
}

// A request may take longer than there is time: who counts that is watch_over(), on another thread.
void LeaderElection::renew(Tenure& tenure, const std::stop_token& end) {
  while (sleep_for(end, options_.retry)) {
    const Moment began = now();
    const Attempt attempt = try_to_hold();
    const std::lock_guard lock(tenure.mutex);
    if (attempt == Attempt::held) tenure.renewed = began;
    if (attempt == Attempt::refused && !tenure.is_lost) tenure.is_lost = tenure.is_taken = true;
    tenure.changed.notify_all();
    if (tenure.is_lost) return;
  }
}

// Returns when it was lost, when `lead` has returned, or when stopped.
void LeaderElection::watch_over(Tenure& tenure, const std::stop_token& stop) {
  std::unique_lock lock(tenure.mutex);
  while (!tenure.is_over && !tenure.is_lost && !stop.stop_requested()) {
    const Moment renewed = tenure.renewed;
    tenure.changed.wait_until(lock, stop, renewed + options_.renew_deadline, [&] {
      return tenure.is_over || tenure.is_lost || tenure.renewed != renewed;
    });
    if (now() >= tenure.renewed + options_.renew_deadline) tenure.is_lost = true;
  }
  if (tenure.is_lost) is_leader_ = false;
}

// How long it is still ours for others, if it was lost.
std::optional<Duration> LeaderElection::time_after_loss(Tenure& tenure) const {
  const std::lock_guard lock(tenure.mutex);
  if (!tenure.is_lost) return std::nullopt;
  const auto left = tenure.renewed + options_.lease_duration - now();
  return std::max(Duration::zero(), std::chrono::duration_cast<Duration>(left));
}

LeaderElection::Attempt LeaderElection::try_to_hold() {
  try {
    std::optional<model::Json> lease =
        client_.find(client::kLeases, options_.lease.ns, options_.lease.name);
    if (!lease) {
      client_.create(client::kLeases, new_lease());
      return Attempt::held;
    }
    const std::string_view holder = model::text_at(*lease, {"spec", "holderIdentity"});
    const bool is_ours = holder == options_.identity;
    if (!is_ours && !holder.empty() && !has_expired(*lease)) return Attempt::refused;
    model::JsonObject& spec = model::make_object_at(*lease, {"spec"});
    if (!is_ours) {
      spec["leaseTransitions"] =
          model::number_at(*lease, {"spec", "leaseTransitions"}).value_or(0) + 1;
      spec["acquireTime"] = wall_time();
    }
    spec["holderIdentity"] = options_.identity;
    spec["leaseDurationSeconds"] = seconds_of(options_.lease_duration);
    spec["renewTime"] = wall_time();
    client_.update(client::kLeases, *lease);
    return Attempt::held;
  } catch (const Error& error) {
    // Also a conflict: somebody wrote it, which need not mean that they hold it.
    log::debug("the lease could not be written",
               {{"lease", options_.lease.text()}, {"reason", error.what()}});
    return Attempt::failed;
  }
}

model::Json LeaderElection::new_lease() const {
  const std::string time = wall_time();
  return {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata", {{"name", options_.lease.name}, {"namespace", options_.lease.ns}}},
          {"spec",
           {{"holderIdentity", options_.identity},
            {"leaseDurationSeconds", seconds_of(options_.lease_duration)},
            {"acquireTime", time},
            {"renewTime", time},
            {"leaseTransitions", 0}}}};
}

// By our own clock, from when we first saw it as it is: clocks of machines differ.
bool LeaderElection::has_expired(const model::Json& lease) {
  const std::string_view version = model::resource_version_of(lease);
  if (version != seen_) {
    seen_ = version;
    seen_since_ = now();
    return false;
  }
  const std::int64_t seconds = model::number_at(lease, {"spec", "leaseDurationSeconds"})
                                   .value_or(seconds_of(options_.lease_duration));
  return now() - seen_since_ >
         std::chrono::seconds(std::clamp<std::int64_t>(seconds, 1, kMostSeconds));
}

// Others need not wait for it to expire. If this fails, they do.
void LeaderElection::give_up() {
  try {
    model::Json lease = client_.get(client::kLeases, options_.lease.ns, options_.lease.name);
    if (model::text_at(lease, {"spec", "holderIdentity"}) != options_.identity) return;
    model::JsonObject& spec = model::make_object_at(lease, {"spec"});
    spec.erase("holderIdentity");
    spec["leaseDurationSeconds"] = 1;
    spec["renewTime"] = wall_time();
    client_.update(client::kLeases, lease);
  } catch (const Error& error) {
    log::debug("the lease could not be given up", {{"reason", error.what()}});
  }
}

}  // namespace hearth::reconcile
