// Writes the status of pools, beside their work: counts change with every claim, and refill must
// not wait until somebody has been told.
//
// One thread, so at most one write of a pool is under way. The first change is written at once;
// those that follow quickly are written together after a pause, and the last one always. Only the
// newest wish of a pool is kept. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "client/client.h"
#include "model/meta.h"

namespace hearth::controllers {

struct StatusPauses {
  Duration between_writes = std::chrono::milliseconds(50);
  // Wanting again what was just written means that the cache is behind, or that somebody else
  // wrote. After this it was somebody else.
  Duration before_echo = std::chrono::seconds(1);
  Duration after_failure = std::chrono::seconds(1);
};

class PoolStatusWriter {
 public:
  // `client` must outlive it.
  explicit PoolStatusWriter(client::Client& client, StatusPauses pauses = {});
  PoolStatusWriter(const PoolStatusWriter&) = delete;
  PoolStatusWriter& operator=(const PoolStatusWriter&) = delete;
  // What waits is not written: whoever comes next counts anew.
  ~PoolStatusWriter();

  // `status` as a merge patch, for a pool that the cache shows with another.
  void want(const model::Key& pool, client::Json status);
  // The cache shows what is wanted: what waits is out of date.
  void settled(const model::Key& pool);
  void forget(const model::Key& pool);
  // Writes what waits without its pauses; returns when that is done.
  void flush();

  std::uint64_t writes() const;

 private:
  using Moment = std::chrono::steady_clock::time_point;
  struct Entry {
    std::optional<client::Json> wanted;
    Moment due{};
    std::optional<Moment> written_at;  // none: never
    std::string written;               // the last, as text
  };
  using Entries = std::map<model::Key, Entry>;

  void run(const std::stop_token& stop);
  Entries::iterator first_due();
  void write(std::unique_lock<std::mutex>& lock, Entries::iterator entry);

  client::Client& client_;
  const StatusPauses pauses_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  Entries entries_;
  bool is_flushing_ = false;
  bool is_writing_ = false;
  std::uint64_t writes_ = 0;
  std::jthread thread_;
};

}  // namespace hearth::controllers
