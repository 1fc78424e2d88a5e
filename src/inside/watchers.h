// Watchers whose events wait to be fetched. Thread-safe.
//
// A thread of its own reads what happens, so that new folders are watched at once; whoever fetches
// reads what has happened up to then himself, and misses nothing.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/guarded.h"
#include "inside/watch.h"

namespace hearth::inside {

class Watchers {
 public:
  Watchers();
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;
  ~Watchers();

  // Returns its id. `include_entry` is a note for whoever fetches. Throws Error.
  std::string add(std::string path, bool recursive, bool include_entry);

  struct Fetched {
    std::string path;
    bool include_entry = false;
    std::vector<WatchEvent> events;
  };
  // What happened since the last time. Throws Error: not_found, exhausted (some of it is lost).
  Fetched fetch(const std::string& id);

  void remove(const std::string& id);

 private:
  struct Watched {
    Watched(std::string path, bool recursive, bool with_entry)
        : watcher(std::move(path), recursive), include_entry(with_entry) {}

    void drain();

    std::mutex mutex;  // guards what follows
    Watcher watcher;
    const bool include_entry;
    std::deque<WatchEvent> events;
    bool lost = false;
  };

  std::shared_ptr<Watched> find(const std::string& id);
  void run();
  void ring() const;

  linux::Fd bell_;
  struct State {
    std::map<std::string, std::shared_ptr<Watched>> all;
    bool stopping = false;
  };
  Guarded<State> state_;
  std::thread thread_;  // from the first watcher on; guarded by state_
};

}  // namespace hearth::inside
