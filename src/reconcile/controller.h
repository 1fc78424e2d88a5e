// Workers that take a reconciler through the keys of a queue, and the watches that fill it.
//
//   cache event ──map──▶ keys ──▶ Queue ──▶ worker: reconcile(key) ──▶ done | later | failed
//
// Watches are declared before the caches start. start() comes when those have synced; until then
// keys only gather. Handlers run on the cache's thread: all they do is add keys.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client/watch_cache.h"
#include "metrics/registry.h"
#include "reconcile/queue.h"
#include "reconcile/reconciler.h"
#include "reconcile/right_of_way.h"

namespace hearth::reconcile {

struct ControllerOptions {
  std::string name;  // in log lines and metrics
  unsigned workers = 1;
  QueueOptions queue = {};
  // Every object is looked at again after this, jittered; zero: never.
  Duration resync = std::chrono::hours(10);
  // Its workers leave the processors to others who want them: for what nobody waits for.
  bool is_background = false;
  // Somebody waits for what it does: others with a patience give way meanwhile.
  bool is_urgent = false;
  // How long it lets urgent ones go first before it has its turn; zero: never.
  Duration patience{};
  // With which keys it does.
  std::function<bool(const model::Key& key)> can_wait = [](const model::Key&) { return true; };
  // Who is urgent; must outlive it. Null: nobody ever is.
  RightOfWay* right_of_way = nullptr;
  // What it does is counted there, under the names that people know from controller-runtime. Must
  // outlive it.
  metrics::Registry* metrics = nullptr;
};

// Which keys an object concerns.
using KeysOf = std::function<std::vector<model::Key>(const model::Json& object)>;
// Whether an update is worth a look.
using IsWorth = std::function<bool(const model::Json& before, const model::Json& now)>;

class Controller {
 public:
  // `reconciler` must outlive it.
  Controller(Reconciler& reconciler, ControllerOptions options);
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;
  ~Controller();

  // Objects of the reconciler's own kind. Also what resync goes through.
  void watch(client::WatchCache& cache, IsWorth is_worth = {});
  // Objects that one of its kind controls, by group and kind of the controller reference.
  void watch_owned(client::WatchCache& cache, std::string_view group, std::string_view kind,
                   IsWorth is_worth = {});
  // Objects that concern its kind in another way; of an update both what it was and what it is.
  // Deletions always count.
  void watch_mapped(client::WatchCache& cache, KeysOf keys_of, IsWorth is_worth = {});

  void start();
  // Idempotent. Waits for what is being reconciled.
  void stop();

  Queue& queue() { return queue_; }
  const Queue& queue() const { return queue_; }
  const std::string& name() const { return options_.name; }

  // Since its making.
  struct Counts {
    std::uint64_t succeeded = 0;
    std::uint64_t failed = 0;
  };
  Counts counts() const;

 private:
  struct Meters;

  void see(const model::Key& key);
  bool gives_way() const;
  void work(const std::stop_token& stop);
  void reconcile(const model::Key& key);
  void failed(const model::Key& key, const std::exception& error, bool is_expected = false);
  void resync(const std::stop_token& stop);

  Reconciler& reconciler_;
  const ControllerOptions options_;
  const std::unique_ptr<Meters> meters_;
  Queue queue_;
  std::vector<client::WatchCache*> own_;
  std::atomic<std::uint64_t> succeeded_ = 0;
  std::atomic<std::uint64_t> failed_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace hearth::reconcile
