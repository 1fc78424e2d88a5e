#include <sqlite3.h>

#include <utility>

#include "base/thread_rank.h"
#include "store/checkpoints_internal.h"

namespace hearth::store {
namespace {

// A few milliseconds for which writers wait.
constexpr int kFewFrames = 256;

// If writers are faster than the disk, what came meanwhile never gets less: then they have to wait.
constexpr int kMostPasses = 4;

}  // namespace

Checkpoints::Checkpoints(const std::string& path, std::mutex& writing,
                         std::function<void()> on_disk)
    : connection_(path), writing_(writing), on_disk_(std::move(on_disk)) {
  connection_.set_checkpoint_on_close(false);
  connection_.execute("PRAGMA wal_autocheckpoint=0");
  connection_.execute("PRAGMA synchronous=FULL");
  // Until it has read something, it does not know that there is a write-ahead log.
  connection_.number("PRAGMA user_version");
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Checkpoints::~Checkpoints() = default;

void Checkpoints::ask(bool is_urgent) {
  {
    const std::lock_guard lock(mutex_);
    if (is_urgent) is_urgent_ = true;
    if (std::exchange(asked_, true)) return;
  }
  changed_.notify_all();
}

void Checkpoints::wait_if_urgent() {
  if (!is_urgent_) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_urgent_; });
}

void Checkpoints::run(const std::stop_token& stop) {
  step_back();
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return asked_; })) return;
    }
    make_one();
  }
}

void Checkpoints::make_one() {
  int left = copy();
  for (int pass = 1; left > kFewFrames && pass < kMostPasses && !is_urgent_; ++pass) {
    left = copy();
  }
  const std::lock_guard writing(writing_);
  if (left >= 0) left = copy();
  if (left == 0) on_disk_();
  {
    // Whoever asked until now asked for this one.
    const std::lock_guard lock(mutex_);
    asked_ = false;
    is_urgent_ = false;
  }
  changed_.notify_all();
}

int Checkpoints::copy() {
  int frames = 0;
  int copied = 0;
  const int result = ::sqlite3_wal_checkpoint_v2(connection_.get(), "main",
                                                 SQLITE_CHECKPOINT_PASSIVE, &frames, &copied);
  return result == SQLITE_OK ? frames - copied : -1;
}

}  // namespace hearth::store
