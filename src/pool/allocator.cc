#include "pool/allocator.h"

#include <algorithm>

#include "client/kinds.h"
#include "metrics/registry.h"
#include "pool/state_internal.h"

namespace hearth::pool {
namespace {

// As good as for ever, and far from where adding to a moment overflows.
constexpr Duration kMostPatience = std::chrono::hours(24 * 365);

bool is_from_somebody_faster(const model::StatusError& error) {
  return error.status().code == 409 || error.status().code == 404;
}

std::vector<metrics::Sample> stock_samples(const std::shared_ptr<AllocatorState>& state) {
  std::vector<metrics::Sample> samples;
  if (!state) return samples;
  for (const auto& [pool, stock] : state->stocks()) {
    const auto add = [&](std::string_view what, std::size_t count) {
      samples.push_back(
          {{{"namespace", pool.ns}, {"pool", pool.name}, {"state", std::string(what)}},
           static_cast<double>(count)});
    };
    add("ready", stock.ready);
    add("unready", stock.unready);
    add("starting", stock.starting);
    add("held", stock.held);
    add("waited_for", stock.waiting);
  }
  return samples;
}

}  // namespace

Hold& Hold::operator=(Hold&& other) noexcept {
  Hold before(std::move(*this));
  state_ = std::move(other.state_);
  sandbox_ = std::move(other.sandbox_);
  number_ = other.number_;
  return *this;
}

Hold::~Hold() {
  if (state_) state_->give_back(*this);
}

void Hold::keep() {
  if (const auto state = std::exchange(state_, nullptr)) state->keep(*this);
}

class Allocator::Ticket {
 public:
  Ticket(std::shared_ptr<AllocatorState> state, WaiterPtr waiter)
      : state_(std::move(state)), waiter_(std::move(waiter)) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() { state_->leave(*waiter_); }

 private:
  std::shared_ptr<AllocatorState> state_;
  WaiterPtr waiter_;
};

Allocator::Allocator(client::WatchCache& sandboxes, metrics::Registry& registry)
    : state_(std::make_shared<AllocatorState>(registry)) {
  // The cache may go on when this is gone: its handlers keep what they need.
  sandboxes.add_handlers({
      .on_add = [state = state_](const Object& now) { state->see(now); },
      .on_update = [state = state_](const Object&, const Object& now) { state->see(now); },
      .on_delete = [state = state_](const Object& last) { state->see_gone(last); },
  });
  registry.collect("hearth_allocator_stock", "Members of warm pools, by what they are good for.",
                   metrics::Kind::gauge,
                   [state = std::weak_ptr(state_)] { return stock_samples(state.lock()); });
  timer_ =
      std::jthread([state = state_](const std::stop_token& stop) { state->watch_deadlines(stop); });
}

Allocator::~Allocator() {
  timer_.request_stop();
  timer_.join();
  state_->close();
}

std::optional<Hold> Allocator::take(const Wish& wish) {
  return state_->take(wish);
}

std::shared_ptr<Allocator::Ticket> Allocator::wait(Wish wish, Duration patience, Served served) {
  const auto waiter = std::make_shared<Waiter>();
  waiter->wish = std::move(wish);
  waiter->served = std::move(served);
  waiter->since = std::chrono::steady_clock::now();
  waiter->deadline = waiter->since + std::min(patience, kMostPatience);
  auto ticket = std::make_shared<Ticket>(state_, waiter);
  state_->wait(waiter);
  return ticket;
}

Stock Allocator::stock(const model::Key& pool) const {
  return state_->stock(pool);
}

std::vector<std::pair<model::Key, Stock>> Allocator::stocks() const {
  return state_->stocks();
}

void Allocator::drop(const model::Key& pool) {
  state_->drop(pool);
}

Object Allocator::commit(client::Client& client, Hold hold, Json patch,
                         const client::PatchOptions& options) {
  const Moment began = std::chrono::steady_clock::now();
  Object won = try_commit(client, hold, std::move(patch), options);
  state_->note_commit(hold, std::chrono::steady_clock::now() - began, won != nullptr);
  return won;
}

// A newer version that is still idle does as well: most changes are to its status.
std::optional<Json> Allocator::prepare(Hold& hold, Json patch) const {
  const Object newest = state_->newest(hold);
  if (!newest) return std::nullopt;
  hold.sandbox_ = newest;
  model::make_object_at(patch, {"metadata"})["resourceVersion"] =
      model::resource_version_of(*newest);
  return patch;
}

void Allocator::conclude(const Hold& hold, const Object& now, Duration took) {
  state_->learn(now, /*is_from_cache=*/false);
  state_->note_commit(hold, took, /*is_won=*/true);
}

Object Allocator::try_commit(client::Client& client, Hold& hold, Json patch,
                             const client::PatchOptions& options) {
  const std::optional<Json> prepared = prepare(hold, std::move(patch));
  if (!prepared) return nullptr;
  const model::Key key = model::key_of(*hold.sandbox());
  try {
    Object now = client.patch(client::kSandboxes, key.ns, key.name, client::PatchKind::merge,
                              *prepared, options);
    state_->learn(now, /*is_from_cache=*/false);
    return now;
  } catch (const model::StatusError& error) {
    if (!is_from_somebody_faster(error)) throw;
  }
  // The cache is behind: the server says whether it is still to be had.
  if (std::optional<Json> now = client.find(client::kSandboxes, key.ns, key.name)) {
    state_->learn(std::make_shared<const Json>(*std::move(now)), /*is_from_cache=*/false);
  } else {
    hold.keep();
  }
  return nullptr;
}

}  // namespace hearth::pool
