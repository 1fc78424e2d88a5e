#include "reconcile/controller.h"

#include <random>
#include <utility>

#include "base/cancel.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "base/thread_rank.h"
#include "model/status.h"

namespace hearth::reconcile {
namespace {

// A tenth of the time is left to chance, so that what began together does not stay together.
Duration up_to(Duration most) {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::uniform_real_distribution<double> part(0, 1);
  return std::chrono::duration_cast<Duration>(most * part(random));
}

std::vector<double> queue_buckets() {
  return metrics::exponential_buckets(1e-6, 10, 9);
}

}  // namespace

// Names and labels are controller-runtime's, so that its dashboards work.
struct Controller::Meters {
  Meters(metrics::Registry* given, const std::string& name)
      : unseen(given != nullptr ? nullptr : std::make_unique<metrics::Registry>()),
        registry(given != nullptr ? *given : *unseen),
        own{{"controller", name}},
        of_queue{{"controller", name}, {"name", name}} {}

  metrics::Counter& result(const char* result) {
    const metrics::Labels labels{own.front(), {"result", result}};
    return registry.counter("controller_runtime_reconcile_total", "Reconciles, by how they ended.",
                            labels);
  }

  std::unique_ptr<metrics::Registry> unseen;  // where none was given
  metrics::Registry& registry;
  metrics::Labels own;
  metrics::Labels of_queue;
  metrics::Counter& succeeded = result("success");
  metrics::Counter& later = result("requeue_after");
  metrics::Counter& failed = result("error");
  metrics::Counter& errors =
      registry.counter("controller_runtime_reconcile_errors_total", "Reconciles that failed.", own);
  metrics::Counter& hopeless =
      registry.counter("controller_runtime_terminal_reconcile_errors_total",
                       "Reconciles that failed and are not tried again.", own);
  metrics::Histogram& took =
      registry.histogram("controller_runtime_reconcile_time_seconds", "How long a reconcile took.",
                         metrics::latency_buckets(), own);
  metrics::Gauge& active =
      registry.gauge("controller_runtime_active_workers", "Workers that are reconciling.", own);
  metrics::Gauge& workers = registry.gauge("controller_runtime_max_concurrent_reconciles",
                                           "Workers that there are.", own);
  QueueMetrics queue{
      .depth = &registry.gauge("workqueue_depth", "Keys that are due.", of_queue),
      .added = &registry.counter("workqueue_adds_total", "Keys that became due.", of_queue),
      .retried = &registry.counter("workqueue_retries_total", "Keys that failed.", of_queue),
      .waited = &registry.histogram("workqueue_queue_duration_seconds",
                                    "How long a key that is due waits for a worker.",
                                    queue_buckets(), of_queue)};
  metrics::Histogram& worked = registry.histogram(
      "workqueue_work_duration_seconds", "How long a worker has a key.", queue_buckets(), of_queue);
};

namespace {

QueueOptions with_metrics(QueueOptions options, const QueueMetrics& metrics) {
  options.metrics = metrics;
  return options;
}

}  // namespace

Controller::Controller(Reconciler& reconciler, ControllerOptions options)
    : reconciler_(reconciler),
      options_(std::move(options)),
      meters_(std::make_unique<Meters>(options_.metrics, options_.name)),
      queue_(with_metrics(options_.queue, meters_->queue)) {
  meters_->workers.set(options_.workers);
}

Controller::~Controller() {
  stop();
}

void Controller::watch(client::WatchCache& cache, IsWorth is_worth) {
  own_.push_back(&cache);
  watch_mapped(
      cache, [](const model::Json& object) { return std::vector{model::key_of(object)}; },
      std::move(is_worth));
}

void Controller::watch_owned(client::WatchCache& cache, std::string_view group,
                             std::string_view kind, IsWorth is_worth) {
  const auto keys_of = [group = std::string(group),
                        kind = std::string(kind)](const model::Json& object) {
    const std::optional<model::Owner> owner = model::controller_of(object);
    if (!owner || owner->kind != kind || owner->group() != group) return std::vector<model::Key>();
    return std::vector{model::Key{std::string(model::namespace_of(object)), owner->name}};
  };
  watch_mapped(cache, keys_of, std::move(is_worth));
}

void Controller::watch_mapped(client::WatchCache& cache, KeysOf keys_of, IsWorth is_worth) {
  const auto add = [this, keys_of = std::move(keys_of)](const model::Json& object) {
    for (const model::Key& key : keys_of(object)) see(key);
  };
  cache.add_handlers({
      .on_add = [add](const client::Object& now) { add(*now); },
      .on_update =
          [add, is_worth = std::move(is_worth)](const client::Object& before,
                                                const client::Object& now) {
            if (is_worth && !is_worth(*before, *now)) return;
            add(*before);
            add(*now);
          },
      .on_delete = [add](const client::Object& last) { add(*last); },
  });
}

bool Controller::gives_way() const {
  return options_.right_of_way && options_.patience > Duration::zero();
}

// A worker that is woken to give way is in the way of those who are urgent, as often as they write
// something.
void Controller::see(const model::Key& key) {
  if (gives_way() && options_.right_of_way->is_busy() && options_.can_wait(key))
    queue_.add_after(key, RightOfWay::kGlance);
  else
    queue_.add(key);
}

void Controller::start() {
  HEARTH_ASSERT(threads_.empty());
  for (unsigned i = 0; i < options_.workers; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
  if (options_.resync <= Duration::zero()) return;
  threads_.emplace_back([this](const std::stop_token& stop) { resync(stop); });
}

void Controller::stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

Controller::Counts Controller::counts() const {
  return {.succeeded = succeeded_, .failed = failed_};
}

void Controller::work(const std::stop_token& stop) {
  name_thread(options_.name);
  if (options_.is_background) step_back();
  RightOfWay::Turn turn;
  while (const std::optional<model::Key> key = queue_.take(stop)) {
    if (gives_way())
      options_.right_of_way->give_way(turn, options_.patience, stop,
                                      [&] { return options_.can_wait(*key); });
    std::optional<RightOfWay::Urgent> urgent;
    if (options_.right_of_way && options_.is_urgent) urgent.emplace(*options_.right_of_way);
    const auto began = std::chrono::steady_clock::now();
    meters_->active.add(1);
    reconcile(*key);
    meters_->active.add(-1);
    const Duration took = std::chrono::steady_clock::now() - began;
    meters_->took.observe(took);
    meters_->worked.observe(took);
    queue_.done(*key);
  }
}

// The boundary that catches what a reconciler throws.
void Controller::reconcile(const model::Key& key) {
  try {
    const Next next = reconciler_.reconcile(key);
    ++succeeded_;
    (next ? meters_->later : meters_->succeeded).add();
    queue_.forget(key);
    if (next) queue_.add_after(key, *next);
  } catch (const model::StatusError& error) {
    // Somebody else wrote it first: the cache will soon know, and the next try with it.
    failed(key, error, error.status().code == 409);
  } catch (const Error& error) {
    if (error.code() != Code::invalid) return failed(key, error);
    ++failed_;
    meters_->failed.add();
    meters_->errors.add();
    meters_->hopeless.add();
    queue_.forget(key);
    log::warning("an object cannot be reconciled as it is",
                 {{"controller", name()}, {"object", key.text()}, {"reason", error.what()}});
  } catch (const std::exception& error) {
    failed(key, error);
  }
}

void Controller::failed(const model::Key& key, const std::exception& error, bool is_expected) {
  ++failed_;
  meters_->failed.add();
  meters_->errors.add();
  const Duration pause = queue_.add_failed(key);
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(pause).count();
  const log::Level level = is_expected ? log::Level::debug : log::Level::warning;
  if (!log::enabled(level)) return;
  log::write(level, "a reconcile failed",
             {{"controller", name()},
              {"object", key.text()},
              {"reason", error.what()},
              {"again_in_ms", milliseconds}});
}

// Spread over a tenth of the time: thousands of keys at once would be in the way of those that have
// changed.
void Controller::resync(const std::stop_token& stop) {
  while (sleep_for(stop, options_.resync - up_to(options_.resync / 10))) {
    for (client::WatchCache* cache : own_) {
      for (const client::Object& object : cache->list()) {
        queue_.add_after(model::key_of(*object), up_to(options_.resync / 10));
      }
    }
  }
}

}  // namespace hearth::reconcile
