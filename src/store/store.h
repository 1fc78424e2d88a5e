// Versioned objects with one revision for all, a history to watch, and a log on disk.
//
// Every read is served from memory and shows what is committed, never more. A write is checked
// against the revision its writer saw, gets the store's next revision, and is on record before
// write() returns; writers that come together share one transaction and one fsync. What was
// acknowledged survives kill -9 of this process (and, if asked for, a power cut), and so does the
// history: a watch goes on from where it was.
//
// The file is an SQLite database whose one table is the log (docs/adr/0014); beside it are its
// write-ahead log ("-wal") and the mark ("-mark": a lock, and how far writes were acknowledged).
// Nobody else can open it while we do; use backup().
//
// Thread-safe. write() and backup() block on the disk, everything else for microseconds.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "store/object.h"
#include "store/watch.h"

namespace hearth::store {

class Checkpoints;
class LateNews;
class LogFile;
class Mark;

struct Options {
  std::string path;  // of the file; its folder must exist. A file that is not there is made
  const Clock* clock = nullptr;  // null: the system's. Borrowed

  // History ends where the first of these is reached. Five minutes, as clients and other servers of
  // this API expect; the rest is what a flood of writes may take of our memory (a change costs its
  // text and some 300 bytes), and of the disk.
  Duration keep_for = std::chrono::minutes(5);
  std::size_t keep_changes = 200'000;
  std::size_t keep_bytes = 128 << 20;
};

enum class Durability {
  process,  // survives the end of this process, however it ends
  power,    // and of the machine: fsynced before the answer
};

struct Write {
  static constexpr std::size_t kNoHole = static_cast<std::size_t>(-1);

  Key key;
  Revision expected = 0;  // what the writer saw; 0: there must be no such object
  bool remove = false;
  std::string text;            // for a removal too: the last state
  std::size_t hole = kNoHole;  // where in `text` this write's revision is inserted, in decimal
  Tags tags;
  Durability durability = Durability::process;
  std::shared_ptr<Companion> companion = {};
  // Whoever waits for it knows already: watches hear of it a moment later (some milliseconds), or
  // with the next change that is for them.
  bool news_can_wait = false;
};

struct Outcome {
  bool kept = false;
  ObjectPtr object;  // kept: what is stored now (a removal: the last state). Otherwise: what is
                     // there instead, null for nothing
};

struct ListQuery {
  struct Place {
    std::string ns;
    std::string name;
  };

  std::string resource;
  std::optional<std::string> ns;  // none: all
  std::optional<Place> after;     // of the last object of the page before
  std::size_t limit = 0;          // 0: no limit
};

struct Snapshot {
  std::vector<ObjectPtr> objects;  // by namespace and name
  Revision revision = 0;           // of the whole store
  std::size_t remaining = 0;       // behind these
};

class Store {
 public:
  // Reads and verifies everything. Throws Error: conflict (another process has it), invalid (not a
  // store, or of a newer format), internal (damaged: which file, which revision).
  explicit Store(Options options);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  // Blocks until it is kept or refused. Throws Error: invalid (a key without resource or name, a
  // hole outside the text, a text that is too long), exhausted (no room on the disk) or internal
  // (the disk fails). Then nothing was written, and later writes may succeed.
  Outcome write(Write write);
  // All of them are kept or none, with revisions that follow each other and nothing between them.
  // Each must be of another object. Outcomes are in the order of the writes.
  std::vector<Outcome> write_together(std::vector<Write> writes);

  ObjectPtr find(const Key& key) const;  // null: there is none
  Snapshot list(const ListQuery& query) const;
  // As list() was at an earlier revision. Nothing: that is no longer kept. Throws Error(invalid)
  // for a revision that is still to come.
  std::optional<Snapshot> list_at(const ListQuery& query, Revision at) const;

  Revision revision() const;
  // Changes after this one are kept.
  Revision oldest() const;
  // Until the store has reached `revision`; false when it did not in time.
  bool wait_for(Revision revision, Duration time) const;

  // Changes after `after`, which may be one that is still to come. See watch.h.
  std::unique_ptr<Watch> watch(Scope scope, Revision after, std::function<void()> wake);
  // News that could wait are told now: somebody waits for who watches.
  void hurry_news();

  // A copy of everything in one new file, whole as of some moment of the call. Writers wait for a
  // few milliseconds at a time. Throws Error(already_exists) and what write() throws.
  void backup(const std::string& path);

 private:
  struct Turn;
  struct Batch;

  void load(LogFile& file, State& state);
  void take(Turn& mine);
  // And whether it is this one's to lead.
  std::pair<std::shared_ptr<Batch>, bool> join(Turn& mine);
  void lead(const std::shared_ptr<Batch>& batch);
  void await_others(Batch& batch);
  void commit(const std::vector<Turn*>& turns);
  std::vector<ChangePtr> stage(const std::vector<Turn*>& turns) const;

  const SystemClock system_clock_;
  const Clock& clock_;
  std::unique_ptr<Mark> mark_;  // first, because it is the lock
  std::mutex file_mutex_;  // guards all down to last_commit_ but state_, once the store is open
  std::unique_ptr<LogFile> file_;
  std::unique_ptr<State> state_;  // has its own lock
  std::unique_ptr<LateNews> late_news_;
  std::deque<Revision> garbage_;  // rows that nobody needs any more
  std::unique_ptr<Checkpoints> checkpoints_;
  struct {
    std::size_t writers = 0;
    std::chrono::steady_clock::time_point end;
    std::chrono::steady_clock::duration took{};
  } last_commit_;

  std::mutex open_mutex_;        // guards open_ and what is in it; taken after file_mutex_
  std::shared_ptr<Batch> open_;  // the one that writers may join; null: none
};

// Makes a store at `path` from a backup, or from what can be read of a store that was damaged.
// Verifies everything first. Throws Error: already_exists (there is a store at `path`, running or
// not), and what opening a store throws.
void restore(const std::string& backup, const std::string& path);

}  // namespace hearth::store
