// Group commit: writers queue up, and the one at the head, if nobody has the turn, takes it and as
// many of those behind it as fit into one transaction. A single writer never waits for another
// thread; many share one commit. The turn is also what makes anybody the only user of the file.
#include "store/store.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "store/log_file_internal.h"
#include "store/mark_internal.h"
#include "store/state_internal.h"
#include "store/turn_internal.h"

namespace hearth::store {
namespace {

// One transaction: enough for every writer we expect at once, and an end to how long the first
// waits for the last.
constexpr std::size_t kMostWrites = 1024;
constexpr std::size_t kMostBatchBytes = 8 << 20;

// Twice the largest body of a request to the API.
constexpr std::size_t kMostText = 6 << 20;

// Garbage goes in lots, so that rows which are neighbours on disk cost one page; and not in one go,
// so that nobody waits for all of it.
constexpr std::size_t kLeastGarbage = 256;
constexpr std::size_t kMostGarbage = 2048;

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

// No longer than needed: it stays in memory for as long as the object.
std::string text_with_revision(Write& write, Revision revision) {
  if (write.hole == Write::kNoHole) {
    write.text.shrink_to_fit();
    return std::move(write.text);
  }
  const std::string number = std::to_string(revision);
  std::string text;
  text.reserve(write.text.size() + number.size());
  return text.append(write.text, 0, write.hole).append(number).append(write.text, write.hole);
}

ChangePtr make_change(Write& write, ObjectPtr previous, Revision revision) {
  auto object = std::make_shared<Object>();
  object->text = text_with_revision(write, revision);
  object->key = std::move(write.key);
  object->tags = std::move(write.tags);
  object->revision = revision;
  object->created = previous ? previous->created : revision;
  Change change;
  change.kind = write.remove ? ChangeKind::deleted
                : previous   ? ChangeKind::modified
                             : ChangeKind::added;
  change.revision = revision;
  change.object = std::move(object);
  change.previous = std::move(previous);
  return std::make_shared<const Change>(std::move(change));
}

}  // namespace

Store::~Store() = default;

void Store::pass_turn() {
  const std::lock_guard lock(turns_mutex_);
  taken_ = false;
  if (!turns_.empty()) turns_.front()->changed.notify_one();
}

Outcome Store::write(Write write) {
  check(write);
  Turn mine;
  mine.write = &write;
  std::vector<Turn*> batch;
  {
    std::unique_lock lock(turns_mutex_);
    turns_.push_back(&mine);
    mine.changed.wait(lock, [&] { return mine.done || (!taken_ && turns_.front() == &mine); });
    if (!mine.done) batch = take_turn();
  }
  if (!batch.empty()) {
    commit(batch);
    finish(batch);
  }
  if (mine.error) throw Error(*mine.error);
  return std::move(mine.outcome);
}

// With turns_mutex_ held.
std::vector<Store::Turn*> Store::take_turn() {
  taken_ = true;
  std::vector<Turn*> batch;
  std::size_t bytes = 0;
  while (!turns_.empty() && batch.size() < kMostWrites && bytes < kMostBatchBytes) {
    Turn* next = turns_.front();
    if (next->write == nullptr) break;
    bytes += next->write->text.size();
    batch.push_back(next);
    turns_.pop_front();
  }
  return batch;
}

void Store::finish(const std::vector<Turn*>& batch) {
  {
    // A turn that is done may be gone as soon as the lock is. The first is the caller's own.
    const std::lock_guard lock(turns_mutex_);
    for (std::size_t i = 1; i < batch.size(); ++i) {
      batch[i]->done = true;
      batch[i]->changed.notify_one();
    }
  }
  // Nobody is kept waiting for this but those who come now.
  if (file_->checkpoint_if_due()) mark_->advance_synced();
  pass_turn();
}

void Store::commit(const std::vector<Turn*>& batch) {
  try {
    const std::vector<ChangePtr> changes = stage(batch);
    if (changes.empty()) return;
    const bool sync = std::ranges::any_of(batch, [](const Turn* turn) {
      return turn->outcome.kept && turn->write->durability == Durability::power;
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
  } catch (const Error& error) {
    for (Turn* turn : batch) turn->error.emplace(error.code(), error.what());
  } catch (const std::exception& error) {
    for (Turn* turn : batch) turn->error.emplace(Code::internal, error.what());
  }
}

// Checks every write against what is there and what those before it in the batch will have made.
std::vector<ChangePtr> Store::stage(const std::vector<Turn*>& batch) const {
  std::vector<ChangePtr> changes;
  std::map<Key, ObjectPtr> made;  // null: removed
  Revision revision = state_->revision();
  for (Turn* turn : batch) {
    Write& write = *turn->write;
    const auto earlier = made.find(write.key);
    ObjectPtr there = earlier == made.end() ? state_->find(write.key) : earlier->second;
    turn->outcome.kept = (there ? there->revision : 0) == write.expected;
    if (!turn->outcome.kept) {
      turn->outcome.object = std::move(there);
      continue;
    }
    const ChangePtr change = make_change(write, std::move(there), ++revision);
    if (batch.size() > 1) made[change->object->key] = write.remove ? nullptr : change->object;
    turn->outcome.object = change->object;
    changes.push_back(change);
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

}  // namespace hearth::store
