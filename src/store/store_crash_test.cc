// kill -9 while many threads write: what was acknowledged is there, in the order it was.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <random>
#include <thread>

#include "linux/fd.h"
#include "store/testing_internal.h"

namespace hearth::store {
namespace {

constexpr int kThreads = 6;
constexpr int kKeys = 5;  // of each thread

// What a writer tells after its write returned. Fits a pipe's atomic write.
struct Acknowledged {
  int thread = 0;
  int key = 0;
  Revision revision = 0;
  bool removed = false;
};

Key key_of(int thread, int key) {
  return pod(std::to_string(key), "thread-" + std::to_string(thread));
}

std::string text_of(Revision expected) {
  return "after " + std::to_string(expected) + std::string(expected % 3000, '.') + " at ";
}

// Adds, changes and removes its own objects, over and over.
void write_for_ever(Store& store, int thread, int pipe_fd) {
  for (int i = 0;; ++i) {
    const int number = i % kKeys;
    const ObjectPtr there = store.find(key_of(thread, number));
    Write write;
    write.key = key_of(thread, number);
    write.expected = there ? there->revision : 0;
    write.remove = there && i % 3 == 0;
    write.text = text_of(write.expected);
    write.hole = write.text.size();
    write.durability = i % 20 == 0 ? Durability::power : Durability::process;
    const bool removed = write.remove;
    const Outcome outcome = store.write(std::move(write));
    if (!outcome.kept) ::_exit(3);
    const Acknowledged told{thread, number, outcome.object->revision, removed};
    if (::write(pipe_fd, &told, sizeof told) != sizeof told) ::_exit(4);
  }
}

// Changes two objects of its own together, over and over.
void write_pairs_for_ever(Store& store, int thread, int pipe_fd) {
  for (int i = 0;; ++i) {
    std::vector<Write> pair(2);
    for (int number = 0; number < 2; ++number) {
      const ObjectPtr there = store.find(key_of(thread, number));
      pair[number].key = key_of(thread, number);
      pair[number].expected = there ? there->revision : 0;
      pair[number].text = std::to_string(i);
    }
    const auto outcomes = store.write_together(std::move(pair));
    if (!outcomes[0].kept || !outcomes[1].kept) ::_exit(3);
    const Acknowledged told{thread, 1, outcomes[1].object->revision, false};
    if (::write(pipe_fd, &told, sizeof told) != sizeof told) ::_exit(4);
  }
}

class CrashTest : public StoreTest {
 protected:
  // Everything that was acknowledged by a process that was killed after about `count` of them.
  std::vector<Acknowledged> run_and_kill(const Options& options, std::size_t count,
                                         void (*write)(Store&, int, int) = write_for_ever) {
    linux::Pipe pipe = linux::make_pipe();
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        Store store(options);
        std::vector<std::thread> threads;
        for (int t = 0; t < kThreads; ++t) {
          threads.emplace_back([&, t] { write(store, t, pipe.write.get()); });
        }
        for (std::thread& thread : threads) thread.join();
      } catch (...) {
      }
      ::_exit(2);
    }
    pipe.write.reset();
    std::vector<Acknowledged> all;
    bool killed = false;
    Acknowledged one;
    while (::read(pipe.read.get(), &one, sizeof one) == sizeof one) {
      all.push_back(one);
      if (all.size() >= count && !killed) killed = ::kill(child, SIGKILL) == 0;
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
    return all;
  }

  std::mt19937 random_{42};
};

TEST_F(CrashTest, WatchesGoOnWithoutGapsOrRepeats) {
  std::map<Key, std::string> model;  // what a watcher made of all it saw
  Revision seen = kFirstRevision;
  for (int round = 0; round < 14; ++round) {
    const auto told = run_and_kill(options(), 1 + random_() % 400);
    Store store(options());
    const auto watch = store.watch({}, seen, [] {});
    std::map<Revision, ChangePtr> changes;
    for (Taken taken = watch->take(100); !taken.changes.empty(); taken = watch->take(100)) {
      ASSERT_FALSE(taken.expired);
      for (const ChangePtr& change : taken.changes) {
        ASSERT_EQ(change->revision, ++seen);
        const ObjectPtr& object = change->object;
        const std::string before = change->previous ? change->previous->text : "";
        ASSERT_EQ(model[object->key], before);
        const Revision expected = change->previous ? change->previous->revision : 0;
        ASSERT_EQ(object->text, text_of(expected) + std::to_string(change->revision));
        model[object->key] = change->kind == ChangeKind::deleted ? "" : object->text;
        changes[seen] = change;
      }
    }
    ASSERT_EQ(seen, store.revision());
    for (const Acknowledged& one : told) {
      const auto found = changes.find(one.revision);
      ASSERT_NE(found, changes.end()) << "revision " << one.revision << " was acknowledged";
      EXPECT_EQ(found->second->object->key, key_of(one.thread, one.key));
      EXPECT_EQ(found->second->kind == ChangeKind::deleted, one.removed);
    }
    for (const auto& [key, text] : model) {
      const ObjectPtr object = store.find(key);
      EXPECT_EQ(object ? object->text : "", text);
    }
  }
}

TEST_F(CrashTest, WhatIsKeptTogetherIsLostTogether) {
  for (int round = 0; round < 6; ++round) {
    const auto told = run_and_kill(options(), 1 + random_() % 300, write_pairs_for_ever);
    Store store(options());
    for (const Acknowledged& one : told) EXPECT_GE(store.revision(), one.revision);
    for (int thread = 0; thread < kThreads; ++thread) {
      const ObjectPtr left = store.find(key_of(thread, 0));
      const ObjectPtr right = store.find(key_of(thread, 1));
      ASSERT_EQ(left == nullptr, right == nullptr);
      if (left) EXPECT_EQ(left->text, right->text);
    }
  }
}

TEST_F(CrashTest, CompactionMayBeInterrupted) {
  Options few = options();
  few.keep_changes = 50;
  Revision last = kFirstRevision;
  for (int round = 0; round < 6; ++round) {
    std::map<Key, Acknowledged> newest;
    for (const Acknowledged& one : run_and_kill(few, 600 + random_() % 1500)) {
      const auto [at, is_new] = newest.try_emplace(key_of(one.thread, one.key), one);
      if (!is_new && at->second.revision < one.revision) at->second = one;
      last = std::max(last, one.revision);
    }
    Store store(few);
    ASSERT_GE(store.revision(), last);
    last = store.revision();
    std::map<int, int> untold;
    for (const auto& [key, one] : newest) {
      const ObjectPtr object = store.find(key);
      if (object) EXPECT_GE(object->revision, one.revision);
      const bool as_told = object ? object->revision == one.revision : one.removed;
      if (!as_told) ++untold[one.thread];
    }
    // One write of each thread may have been kept without anybody having been told.
    for (const auto& [thread, count] : untold) EXPECT_EQ(count, 1) << thread;
    EXPECT_EQ(store.list_at({.resource = "pods"}, store.oldest())->revision, store.oldest());
  }
}

}  // namespace
}  // namespace hearth::store
