#include "e2b/limits.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "e2b/answers.h"
#include "e2b/state.h"
#include "model/meta.h"

namespace hearth::e2b {
namespace {

// From so many buckets on those that are full are forgotten.
constexpr std::size_t kManyBuckets = 4096;

}  // namespace

Census::Census(client::WatchCache& sandboxes) {
  sandboxes.add_handlers({
      .on_add = [this](const client::Object& now) { see(*now); },
      .on_update = [this](const client::Object&, const client::Object& now) { see(*now); },
      .on_delete = [this](const client::Object& last) { forget(*last); },
  });
}

void Census::see(const model::Json& sandbox) {
  const State state = state_of(sandbox);
  if (state == State::none || state == State::paused) return forget(sandbox);
  const std::lock_guard lock(mutex_);
  counts_[std::string(model::namespace_of(sandbox))].names.emplace(model::name_of(sandbox));
}

void Census::forget(const model::Json& sandbox) {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(model::namespace_of(sandbox));
  if (found == counts_.end()) return;
  auto& names = found->second.names;
  if (const auto name = names.find(model::name_of(sandbox)); name != names.end()) names.erase(name);
  if (names.empty() && found->second.coming.empty()) counts_.erase(found);
}

Census::Place::Place(Census& census, std::string ns, std::string_view sandbox)
    : census_(census), ns_(std::move(ns)) {
  if (!sandbox.empty()) name(sandbox);
  census_.counts_[ns_].coming.insert(this);
}

void Census::Place::name(std::string_view sandbox) {
  name_.store(&names_.emplace_front(sandbox), std::memory_order_release);
}

Census::Place Census::admit(const tenants::KeyHolder& holder, std::string_view sandbox) {
  return admit(holder.ns, holder.limits.sandboxes, sandbox);
}

// All but the one that asks.
std::size_t Census::count_others(const Count& count, std::string_view sandbox) {
  std::size_t others = count.names.size() - (count.names.contains(sandbox) ? 1 : 0);
  for (const Place* each : count.coming) {
    const std::string* name = each->name_.load(std::memory_order_acquire);
    if (name == nullptr || (*name != sandbox && !count.names.contains(*name))) ++others;
  }
  return others;
}

Census::Place Census::admit(const std::string& ns, std::int64_t most, std::string_view sandbox) {
  const auto limit = static_cast<std::uint64_t>(std::max<std::int64_t>(most, 0));
  const std::lock_guard lock(mutex_);
  const Count& count = counts_[ns];
  // Far from the limit nobody has to be told from anybody.
  const bool is_near = count.names.size() + count.coming.size() >= limit;
  if (is_near && count_others(count, sandbox) >= limit)
    throw Refusal(429,
                  fmt::format("you have reached the maximum number of concurrent sandboxes, which "
                              "is {}; kill one, or have the limit raised",
                              most),
                  not_again());
  return {*this, ns, sandbox};
}

void Census::leave(const Place& place) {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(place.ns_);
  found->second.coming.erase(&place);
  if (found->second.names.empty() && found->second.coming.empty()) counts_.erase(found);
}

std::size_t Census::running(std::string_view ns) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(ns);
  return found == counts_.end() ? 0 : found->second.names.size();
}

Rates::Bucket& Rates::fill(const std::string& whose, double rate, Time now) {
  const auto [place, is_new] = buckets_.try_emplace(whose, Bucket{rate, now});
  Bucket& bucket = place->second;
  const double elapsed = std::chrono::duration<double>(now - bucket.filled).count();
  bucket.tokens = std::min(rate, bucket.tokens + std::max(elapsed, 0.0) * rate);
  bucket.filled = now;
  return bucket;
}

void Rates::admit(const tenants::KeyHolder& holder) {
  const Time now = clock_.now();
  const auto rate = static_cast<double>(holder.limits.creates_per_second);
  const auto team_rate = static_cast<double>(holder.team_creates_per_second);
  const std::lock_guard lock(mutex_);
  // What is full again is as if it had never been.
  if (buckets_.size() >= kManyBuckets)
    std::erase_if(buckets_, [&](const auto& each) {
      return now - each.second.filled >= std::chrono::seconds(1);
    });
  std::vector<std::pair<Bucket*, double>> asked{
      {&fill("team " + holder.team, team_rate, now), team_rate}};
  if (rate < team_rate) asked.emplace_back(&fill("key " + holder.id, rate, now), rate);
  for (const auto& [bucket, its_rate] : asked) {
    if (bucket->tokens >= 1) continue;
    // Whoever may create none is told to come back all the same: limits change.
    const double wait = its_rate > 0 ? std::ceil((1 - bucket->tokens) / its_rate) : 60;
    throw Refusal(429, fmt::format("you create more than {} sandboxes a second", its_rate),
                  {{"Retry-After", fmt::format("{:.0f}", wait)}});
  }
  for (const auto& [bucket, its_rate] : asked) bucket->tokens -= 1;
}

}  // namespace hearth::e2b
