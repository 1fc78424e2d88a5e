#include "controllers/pool_status_writer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "client/kinds.h"

namespace hearth::controllers {
namespace {

using std::chrono::steady_clock;

}  // namespace

PoolStatusWriter::PoolStatusWriter(client::Client& client, StatusPauses pauses)
    : client_(client),
      pauses_(pauses),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

PoolStatusWriter::~PoolStatusWriter() {
  thread_.request_stop();
  thread_.join();
}

void PoolStatusWriter::want(const model::Key& pool, client::Json status) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[pool];
  const bool is_echo = model::to_text(status) == entry.written;
  entry.wanted = std::move(status);
  const Duration pause = is_echo ? pauses_.before_echo : pauses_.between_writes;
  entry.due = entry.written_at ? *entry.written_at + pause : steady_clock::now();
  changed_.notify_all();
}

void PoolStatusWriter::settled(const model::Key& pool) {
  const std::lock_guard lock(mutex_);
  if (const auto found = entries_.find(pool); found != entries_.end()) found->second.wanted.reset();
}

void PoolStatusWriter::forget(const model::Key& pool) {
  const std::lock_guard lock(mutex_);
  entries_.erase(pool);
}

void PoolStatusWriter::flush() {
  std::unique_lock lock(mutex_);
  is_flushing_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] {
    return !is_writing_ && std::ranges::none_of(entries_, [](const auto& entry) {
      return entry.second.wanted.has_value();
    });
  });
  is_flushing_ = false;
}

std::uint64_t PoolStatusWriter::writes() const {
  const std::lock_guard lock(mutex_);
  return writes_;
}

PoolStatusWriter::Entries::iterator PoolStatusWriter::first_due() {
  auto first = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!entry->second.wanted) continue;
    if (first == entries_.end() || entry->second.due < first->second.due) first = entry;
  }
  return first;
}

void PoolStatusWriter::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const auto first = first_due();
    if (first == entries_.end()) {
      changed_.wait(lock, stop, [this] { return first_due() != entries_.end(); });
    } else if (!is_flushing_ && first->second.due > steady_clock::now()) {
      const Moment due = first->second.due;
      changed_.wait_until(lock, stop, due, [&] {
        const auto now_first = first_due();
        return is_flushing_ || now_first == entries_.end() || now_first->second.due < due;
      });
    } else {
      write(lock, first);
    }
  }
}

void PoolStatusWriter::write(std::unique_lock<std::mutex>& lock, Entries::iterator entry) {
  const model::Key pool = entry->first;
  const client::Json status = *std::exchange(entry->second.wanted, std::nullopt);
  entry->second.written = model::to_text(status);
  entry->second.written_at = steady_clock::now();
  ++writes_;
  is_writing_ = true;
  lock.unlock();
  bool is_to_be_tried_again = false;
  try {
    client_.patch(client::kSandboxWarmPools, pool.ns, pool.name, client::PatchKind::merge,
                  model::JsonObject{{"status", status}}, {.subresource = "status"});
  } catch (const Error& error) {
    is_to_be_tried_again = error.code() != Code::not_found && error.code() != Code::invalid;
    log::debug("status of a warm pool not written",
               {{"pool", pool.text()}, {"error", error.what()}});
  }
  lock.lock();
  is_writing_ = false;
  // Meanwhile something newer may be wanted, or the pool may be gone.
  const auto again = entries_.find(pool);
  if (is_to_be_tried_again && again != entries_.end() && !again->second.wanted) {
    again->second.wanted = status;
    again->second.due = steady_clock::now() + pauses_.after_failure;
    is_flushing_ = false;  // nor does flush() hammer a server that refuses
  }
  changed_.notify_all();
}

}  // namespace hearth::controllers
