// One thread of the gateway: its loop, listeners, sessions, buffers and kept connections.
//
// A connection lives and dies on one lane. Other threads reach it by post().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "gateway/access.h"
#include "gateway/access_log.h"
#include "gateway/ahead.h"
#include "gateway/dialler.h"
#include "gateway/endpoint.h"
#include "gateway/errands.h"
#include "gateway/gateway.h"
#include "gateway/loop.h"
#include "gateway/meter.h"
#include "gateway/passage.h"
#include "gateway/spares.h"
#include "gateway/table.h"
#include "gateway/upstreams.h"
#include "http/head_view.h"
#include "net/tls.h"

namespace hearth::net {
class Workers;
}

namespace hearth::gateway {

class Lane;
class Session;

// What all lanes share.
struct Shared {
  GatewayOptions options;
  AccessRules rules;
  Table* table = nullptr;
  const Dialler* dialler = nullptr;
  net::Workers* dials = nullptr;
  Errands* signers = nullptr;  // looking for whose token made a signature: strangers' work
  Ahead* ahead = nullptr;
  Spares* spares = nullptr;
  // Has it woken, once for all who wait; they hear of it by Lane::after_wake.
  std::function<bool(const model::Key& key)> wake;
  std::shared_ptr<net::TlsContext> upstream_tls;
  std::size_t max_connections = 0;
  std::atomic<std::size_t> connections = 0;
  std::atomic<std::size_t> control_requests = 0;
  std::atomic<std::size_t> control_bytes = 0;  // of them, as far as they have come
  std::atomic<bool> is_stopping = false;       // who has not begun with what blocks need not
  std::vector<Lane*> lanes;  // all of them, from before the first runs until the last has ended
};

class Lane {
 public:
  explicit Lane(Shared& shared);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane();

  // Before run(). `tls` may be null. Whom it accepts goes to the lane that has the fewest: several
  // that accept from one socket would share them unevenly, and stay so for as long as they last.
  void add_listener(linux::Fd socket, std::shared_ptr<net::TlsContext> tls);
  void run();

  // --- From any thread.
  void post(std::function<void()> work) { loop_.post(std::move(work)); }
  // A sandbox has another state, or is gone: those who wait look again, its streams are cut.
  void after_change(const RoutePtr& before, const RoutePtr& now);
  void after_wake(const model::Key& key, std::optional<Refusal> refusal);
  // Nobody new; idle connections go. run() returns when none is left, or after cut().
  void drain();
  void cut();

  // --- For sessions, on the lane's thread.
  Loop& loop() { return loop_; }
  Shared& shared() { return shared_; }
  const Limits& limits() const { return shared_.options.limits; }
  Meter& meter() { return meter_; }
  AccessLines* access_lines() { return access_lines_ ? &*access_lines_ : nullptr; }
  BufferPool& buffers() { return buffers_; }
  Upstreams& upstreams() { return upstreams_; }
  // The head at hand, and where the next one is written: of whoever runs at the moment.
  http::HeadView& head() { return head_; }
  std::span<char> scratch() { return *scratch_; }
  bool is_draining() const { return is_draining_; }

  void bury(Session& session);
  void bury(UpstreamPtr upstream) { dead_upstreams_.push_back(std::move(upstream)); }
  // It has more to do, and others come first.
  void again(Session& session);
  // It waits for news of a sandbox; false: too many do.
  bool hold(Session& session);
  void release(Session& session);
  void set_idle(Session& session, bool is_idle);

  void deal(linux::Fd socket, std::string peer, net::TlsContext* tls);
  // The connection that has been idle longest makes room. False: none is idle.
  bool evict();

 private:
  using Sessions = std::list<std::shared_ptr<Session>>;
  class Listener;

  template <typename F>
  void for_each_session(F&& act);
  void open(linux::Fd socket, std::string peer, net::TlsContext* tls);
  void after_batch();
  void tick();
  void end_if_done();

  Shared& shared_;
  Loop loop_;
  Meter meter_;
  std::optional<AccessLines> access_lines_;  // where a log is kept
  BufferPool buffers_;
  Upstreams upstreams_;
  http::HeadView head_;
  std::unique_ptr<std::array<char, kBufferBytes>> scratch_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  Sessions busy_;
  Sessions idle_;  // the longest idle first
  std::set<Session*> held_;
  std::atomic<std::size_t> held_count_ = 0;
  std::atomic<std::size_t> load_ = 0;  // sessions, and those on their way here
  std::vector<std::shared_ptr<Session>> again_;
  std::vector<std::shared_ptr<Session>> dead_;
  std::vector<UpstreamPtr> dead_upstreams_;
  bool is_draining_ = false;
};

}  // namespace hearth::gateway
