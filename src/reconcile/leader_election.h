// Which of several processes may act: the holder of a Lease.
//
// The holder renews it every `retry`; who has not managed to within `renew_deadline` has lost it
// and must stop acting before `lease_duration` is over, when another may take it.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "client/client.h"
#include "model/meta.h"

namespace hearth::reconcile {

struct LeaderElectionOptions {
  model::Key lease;
  std::string identity;  // empty: the host's name and random text
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry = std::chrono::seconds(2);
  // Called, on a thread of its own, where the lease was lost, `lease_duration` is over, and `lead`
  // or a request for the lease has still not returned: nobody answers, and nothing else would keep
  // this process from acting once somebody does. To end it. Not called if empty.
  std::function<void()> on_overrun = {};
};

class LeaderElection {
 public:
  // `client` must outlive it.
  LeaderElection(client::Client& client, LeaderElectionOptions options);

  // Waits until this is the leader; then calls `lead` on a thread of its own, with a token that is
  // stopped when the lease is lost or `stop` is. Returns when `lead` has; the lease is given up if
  // it is still ours. Returns false when it was lost, true when stopped. What `lead` throws comes
  // out.
  bool run(const std::function<void(const std::stop_token& lost)>& lead,
           const std::stop_token& stop);

  // For people, once run() has returned false.
  std::string_view why_lost() const { return why_lost_; }

  bool is_leader() const { return is_leader_; }
  const std::string& identity() const { return options_.identity; }

 private:
  enum class Attempt { held, refused, failed };  // refused: another holds it
  struct Tenure;

  bool wait_for_lease(Tenure& tenure, const std::stop_token& stop);
  void renew(Tenure& tenure, const std::stop_token& end);
  void watch_over(Tenure& tenure, const std::stop_token& stop);
  std::optional<Duration> time_after_loss(Tenure& tenure) const;
  Attempt try_to_hold();
  model::Json new_lease() const;
  bool has_expired(const model::Json& lease);
  void give_up();

  client::Client& client_;
  LeaderElectionOptions options_;
  std::atomic<bool> is_leader_ = false;
  std::string_view why_lost_;
  std::string seen_;  // resourceVersion of another's lease, and since when it has been the same
  std::chrono::steady_clock::time_point seen_since_;
};

}  // namespace hearth::reconcile
