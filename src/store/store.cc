// Group commit: whoever finds no batch to join opens one and leads it. The leader waits for the
// file; meanwhile others join. Then it closes the batch, commits it, and wakes all of it with one
// call. A single writer never waits for another thread; many share one commit.
#include "store/store.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "store/batch_internal.h"
#include "store/checkpoints_internal.h"
#include "store/late_news_internal.h"
#include "store/log_file_internal.h"
#include "store/mark_internal.h"
#include "store/state_internal.h"

namespace hearth::store {
namespace {

// One transaction: enough for every writer we expect at once, and an end to how long the first
// waits for the last.
constexpr std::size_t kMostWrites = 1024;
constexpr std::size_t kMostBatchBytes = 8 << 20;

constexpr Duration kMostPatience = std::chrono::milliseconds(1);

// Twice the largest body of a request to the API.
constexpr std::size_t kMostText = 6 << 20;

// Garbage goes in lots, so that rows which are neighbours on disk cost one page; and not in one go,
// so that nobody waits for all of it.
constexpr std::size_t kLeastGarbage = 256;
constexpr std::size_t kMostGarbage = 2048;

// Of a text that is kept: what was left for a longer revision than it got.
constexpr std::size_t kMostSpare = 24;

void check(const Write& write) {
  if (write.key.resource.empty() || write.key.name.empty()) {
    fail(Code::invalid, "an object needs a resource and a name");
  }
  if (write.text.size() > kMostText) {
    fail(Code::invalid, "an object of {} bytes is too large: limit is {}", write.text.size(),
         kMostText);
  }
  if (write.hole != Write::kNoHole && write.hole > write.text.size()) {
    fail(Code::invalid, "a hole at {} is outside a text of {} bytes", write.hole,
         write.text.size());
  }
  if (write.remove && write.expected == 0) {
    fail(Code::invalid, "what is removed has a revision");
  }
}

// Into the text itself where it has room: others wait for the file meanwhile.
void insert_revision(std::string& text, std::size_t hole, Revision revision) {
  const std::string number = std::to_string(revision);
  if (text.capacity() - text.size() >= number.size()) {
    text.insert(hole, number);
    return;
  }
  std::string longer;
  longer.reserve(text.size() + number.size());
  longer.append(text, 0, hole).append(number).append(text, hole);
  text = std::move(longer);
}

// No longer than needed: it stays in memory for as long as the object.
std::string text_with_revision(Write& write, Revision revision) {
  if (write.hole != Write::kNoHole) insert_revision(write.text, write.hole, revision);
  if (write.text.capacity() - write.text.size() > kMostSpare) write.text.shrink_to_fit();
  return std::move(write.text);
}

ChangePtr make_change(Write& write, ObjectPtr previous, Revision revision) {
  auto object = std::make_shared<Object>();
  object->text = text_with_revision(write, revision);
  object->key = std::move(write.key);
  object->tags = std::move(write.tags);
  object->revision = revision;
  object->created = previous ? previous->created : revision;
  if (write.companion) {
    write.companion->settle(revision);
    object->companion = write.companion;
  }
  Change change;
  change.kind = write.remove ? ChangeKind::deleted
                : previous   ? ChangeKind::modified
                             : ChangeKind::added;
  change.revision = revision;
  change.object = std::move(object);
  change.previous = std::move(previous);
  change.news_can_wait = write.news_can_wait;
  return std::make_shared<const Change>(std::move(change));
}

}  // namespace

Store::~Store() = default;

Outcome Store::write(Write write) {
  check(write);
  Outcome outcome;
  Turn mine{.writes = {&write, 1}, .outcomes = {&outcome, 1}};
  take(mine);
  return outcome;
}

std::vector<Outcome> Store::write_together(std::vector<Write> writes) {
  for (std::size_t i = 0; i < writes.size(); ++i) {
    check(writes[i]);
    for (std::size_t other = 0; other < i; ++other)
      if (writes[i].key == writes[other].key)
        fail(Code::invalid, "two writes of '{}' cannot be kept together", writes[i].key.name);
  }
  std::vector<Outcome> outcomes(writes.size());
  if (writes.empty()) return outcomes;
  Turn mine{.writes = writes, .outcomes = outcomes};
  take(mine);
  return outcomes;
}

void Store::take(Turn& mine) {
  const auto [batch, is_first] = join(mine);
  if (is_first)
    lead(batch);
  else
    batch->done.wait();
  if (mine.error) throw Error(*mine.error);
}

std::pair<std::shared_ptr<Store::Batch>, bool> Store::join(Turn& mine) {
  const std::lock_guard lock(open_mutex_);
  const bool is_full =
      open_ && (open_->turns.size() >= kMostWrites || open_->bytes >= kMostBatchBytes);
  if (is_full) open_->complete.open();
  if (!open_ || is_full) open_ = std::make_shared<Batch>();
  open_->turns.push_back(&mine);
  for (const Write& write : mine.writes) open_->bytes += write.text.size();
  if (open_->turns.size() == open_->expected) open_->complete.open();
  return {open_, open_->turns.size() == 1};
}

void Store::lead(const std::shared_ptr<Batch>& batch) {
  checkpoints_->wait_if_urgent();
  {
    const std::lock_guard file(file_mutex_);
    await_others(*batch);
    {
      const std::lock_guard lock(open_mutex_);
      if (open_ == batch) open_.reset();
    }
    const auto begin = std::chrono::steady_clock::now();
    commit(batch->turns);
    const auto end = std::chrono::steady_clock::now();
    last_commit_ = {.writers = batch->turns.size(), .end = end, .took = end - begin};
    if (file_->is_long()) checkpoints_->ask(file_->is_too_long());
  }
  // The next batch need not wait for this: waking many takes as long as writing for them.
  if (batch->turns.size() > 1) batch->done.open();
}

// Those who were answered together come again together, or not at all. The first of them would
// otherwise commit alone, and the rest after it: two fsyncs for what could have one. So it waits
// for the others, but no longer than the commit takes that this saves.
void Store::await_others(Batch& batch) {
  const auto end = last_commit_.end + std::min<Duration>(last_commit_.took, kMostPatience);
  {
    const std::lock_guard lock(open_mutex_);
    if (open_.get() != &batch || batch.turns.size() >= last_commit_.writers) return;
    if (std::chrono::steady_clock::now() >= end) return;
    batch.expected = last_commit_.writers;
  }
  batch.complete.wait_until(end);
}

void Store::commit(const std::vector<Turn*>& turns) {
  try {
    const std::vector<ChangePtr> changes = stage(turns);
    if (changes.empty()) return;
    const bool sync = std::ranges::any_of(turns, [](const Turn* turn) {
      return turn->outcomes.front().kept &&
             std::ranges::any_of(turn->writes, [](const Write& write) {
               return write.durability == Durability::power;
             });
    });
    std::vector<Revision> garbage;
    if (garbage_.size() >= kLeastGarbage) {
      garbage.assign(garbage_.begin(), garbage_.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                              garbage_.size(), kMostGarbage)));
    }
    file_->append(
        {.changes = changes, .garbage = garbage, .oldest = state_->oldest(), .sync = sync});
    mark_->advance(changes.back()->revision, sync);
    garbage_.erase(garbage_.begin(),
                   garbage_.begin() + static_cast<std::ptrdiff_t>(garbage.size()));
    std::ranges::copy(state_->publish(changes, clock_.now()), std::back_inserter(garbage_));
    if (std::ranges::any_of(changes, [](const ChangePtr& each) { return each->news_can_wait; }))
      late_news_->expect();
  } catch (const Error& error) {
    for (Turn* turn : turns) turn->error.emplace(error.code(), error.what());
  } catch (const std::exception& error) {
    for (Turn* turn : turns) turn->error.emplace(Code::internal, error.what());
  }
}

// Checks every write against what is there and what those before it in the batch will have made.
std::vector<ChangePtr> Store::stage(const std::vector<Turn*>& turns) const {
  std::vector<ChangePtr> changes;
  std::map<Key, ObjectPtr> made;  // null: removed
  Revision revision = state_->revision();
  for (Turn* turn : turns) {
    bool is_kept = true;
    for (std::size_t i = 0; i < turn->writes.size(); ++i) {
      const Write& write = turn->writes[i];
      const auto earlier = made.find(write.key);
      ObjectPtr& there = turn->outcomes[i].object;
      there = earlier == made.end() ? state_->find(write.key) : earlier->second;
      is_kept = is_kept && (there ? there->revision : 0) == write.expected;
    }
    for (std::size_t i = 0; is_kept && i < turn->writes.size(); ++i) {
      Write& write = turn->writes[i];
      Outcome& outcome = turn->outcomes[i];
      const ChangePtr change = make_change(write, std::move(outcome.object), ++revision);
      if (turns.size() > 1) made[change->object->key] = write.remove ? nullptr : change->object;
      outcome = {.kept = true, .object = change->object};
      changes.push_back(change);
    }
  }
  return changes;
}

ObjectPtr Store::find(const Key& key) const {
  return state_->find(key);
}
Snapshot Store::list(const ListQuery& query) const {
  return state_->list(query);
}
std::optional<Snapshot> Store::list_at(const ListQuery& query, Revision at) const {
  return state_->list_at(query, at);
}
Revision Store::revision() const {
  return state_->revision();
}
Revision Store::oldest() const {
  return state_->oldest();
}
bool Store::wait_for(Revision revision, Duration time) const {
  return state_->wait_for(revision, time);
}
std::unique_ptr<Watch> Store::watch(Scope scope, Revision after, std::function<void()> wake) {
  return std::make_unique<Watch>(*state_, std::move(scope), after, std::move(wake));
}
void Store::hurry_news() {
  state_->tell_late();
}

}  // namespace hearth::store
