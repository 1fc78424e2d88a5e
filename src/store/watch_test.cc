#include "store/watch.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "store/testing_internal.h"

namespace hearth::store {
namespace {

constexpr std::size_t kAll = 1000;

// "+a1@2" added, "~a1>a2@3" modified, "-a2>last@4" deleted.
std::vector<std::string> words(const Taken& taken) {
  std::vector<std::string> all;
  for (const ChangePtr& change : taken.changes) {
    const char sign = change->kind == ChangeKind::added      ? '+'
                      : change->kind == ChangeKind::modified ? '~'
                                                             : '-';
    EXPECT_EQ(change->revision, change->object->revision);
    all.push_back(sign + (change->previous ? change->previous->text + ">" : "") +
                  change->object->text + "@" + std::to_string(change->revision));
  }
  return all;
}

class WatchTest : public StoreTest {
 protected:
  std::unique_ptr<Watch> watch(Store& store, Revision after, Scope scope = {.resource = "pods"}) {
    return store.watch(std::move(scope), after, [this] { ++woken_; });
  }

  std::atomic<int> woken_ = 0;
};

TEST_F(WatchTest, SeesEveryChangeAfterItsBeginning) {
  Store store(options());
  put(store, pod("a"), "a1");
  const auto after = watch(store, store.revision());
  const auto all = watch(store, kFirstRevision);
  put(store, pod("a"), "a2");
  put(store, {.resource = "nodes", .ns = "", .name = "n"}, "n1");
  remove(store, pod("a"));

  const Taken taken = after->take(kAll);
  EXPECT_EQ(words(taken), (Words{"~a1>a2@3", "-a2>last@5"}));
  EXPECT_EQ(taken.up_to, 5u);
  EXPECT_EQ(words(all->take(2)), (Words{"+a1@2", "~a1>a2@3"}));
  EXPECT_EQ(words(all->take(2)), (Words{"-a2>last@5"}));
  EXPECT_TRUE(words(all->take(2)).empty());
}

TEST_F(WatchTest, OfEverythingSeesEverything) {
  Store store(options());
  const auto all = watch(store, kFirstRevision, {});
  put(store, pod("a"), "a1");
  put(store, {.resource = "nodes", .ns = "", .name = "n"}, "n1");
  EXPECT_EQ(words(all->take(kAll)), (Words{"+a1@2", "+n1@3"}));
}

TEST_F(WatchTest, OfOneNamespaceOrOneObject) {
  Store store(options());
  const auto ns = watch(store, kFirstRevision, {.resource = "pods", .ns = "one"});
  const auto object = watch(store, kFirstRevision, {.resource = "pods", .ns = "one", .name = "b"});
  put(store, pod("a", "one"), "a");
  put(store, pod("b", "one"), "b");
  put(store, pod("b", "two"), "c");
  const Taken taken = ns->take(kAll);
  EXPECT_EQ(words(taken), (Words{"+a@2", "+b@3"}));
  EXPECT_EQ(taken.up_to, 4u);
  EXPECT_EQ(words(object->take(kAll)), (Words{"+b@3"}));

  EXPECT_TRUE(words(object->take(kAll)).empty());
  put(store, pod("a", "one"), "a2");
  EXPECT_EQ(woken_, 0);
  put(store, pod("b", "one"), "b2");
  EXPECT_EQ(woken_, 1);
}

TEST_F(WatchTest, UpToIsAsFarAsEverythingWasSeen) {
  Store store(options());
  const auto pods = watch(store, kFirstRevision);
  for (int i = 0; i < 3; ++i) put(store, pod("a"), std::to_string(i));
  put(store, {.resource = "nodes", .ns = "", .name = "n"}, "n1");
  EXPECT_EQ(pods->take(2).up_to, 3u);
  EXPECT_EQ(pods->take(2).up_to, 5u);  // the node is none of its business
  EXPECT_EQ(pods->take(2).up_to, 5u);
  put(store, {.resource = "nodes", .ns = "", .name = "n"}, "n2");
  EXPECT_EQ(pods->take(2).up_to, 6u);
}

TEST_F(WatchTest, IsWokenOnceAfterItFoundNothing) {
  Store store(options());
  const auto pods = watch(store, kFirstRevision);
  put(store, pod("a"), "a1");
  EXPECT_EQ(woken_, 0);  // it has not asked yet
  EXPECT_EQ(words(pods->take(kAll)), (Words{"+a1@2"}));
  put(store, pod("a"), "a2");
  EXPECT_EQ(woken_, 0);  // it found something, so it will ask again
  EXPECT_EQ(words(pods->take(kAll)), (Words{"~a1>a2@3"}));
  EXPECT_TRUE(words(pods->take(kAll)).empty());
  put(store, {.resource = "nodes", .ns = "", .name = "n"}, "n1");
  EXPECT_EQ(woken_, 0);
  put(store, pod("a"), "a3");
  put(store, pod("a"), "a4");
  EXPECT_EQ(woken_, 1);
  EXPECT_EQ(words(pods->take(kAll)), (Words{"~a2>a3@5", "~a3>a4@6"}));
}

TEST_F(WatchTest, MayBeginInTheFuture) {
  Store store(options());
  const auto pods = watch(store, 3);
  EXPECT_TRUE(words(pods->take(kAll)).empty());
  put(store, pod("a"), "a1");
  put(store, pod("a"), "a2");
  EXPECT_EQ(woken_, 0);
  EXPECT_TRUE(words(pods->take(kAll)).empty());
  put(store, pod("a"), "a3");
  EXPECT_EQ(woken_, 1);
  EXPECT_EQ(words(pods->take(kAll)), (Words{"~a2>a3@4"}));
}

TEST_F(WatchTest, ExpiresWhenHistoryHasMovedOn) {
  Options few = options();
  few.keep_changes = 2;
  Store store(few);
  const auto slow = watch(store, kFirstRevision);
  EXPECT_TRUE(words(slow->take(kAll)).empty());
  for (int i = 0; i < 5; ++i) put(store, pod("a"), std::to_string(i));

  const Taken taken = slow->take(kAll);
  EXPECT_TRUE(taken.expired);
  EXPECT_TRUE(taken.changes.empty());
  EXPECT_TRUE(slow->take(kAll).expired);
  EXPECT_TRUE(watch(store, store.oldest() - 1)->take(kAll).expired);
  EXPECT_EQ(words(watch(store, store.oldest())->take(kAll)), (Words{"~2>3@5", "~3>4@6"}));
}

// It asked, and nothing happened that it wants to know of: history may move on without it.
TEST_F(WatchTest, OfAQuietResourceDoesNotExpire) {
  Options few = options();
  few.keep_changes = 2;
  Store store(few);
  const auto quiet = watch(store, kFirstRevision, {.resource = "nodes"});
  EXPECT_TRUE(words(quiet->take(kAll)).empty());
  for (int i = 0; i < 9; ++i) put(store, pod("a"), std::to_string(i));
  EXPECT_EQ(quiet->take(kAll).up_to, store.revision());
  for (int i = 0; i < 9; ++i) put(store, pod("a"), std::to_string(i));
  put(store, {.resource = "nodes", .ns = "", .name = "n"}, "n1");
  EXPECT_EQ(woken_, 1);
  EXPECT_EQ(words(quiet->take(kAll)), (Words{"+n1@20"}));
}

TEST_F(WatchTest, GoesOnAfterTheStoreWasClosed) {
  {
    Store store(options());
    put(store, pod("a"), "a1");
    put(store, pod("b"), "b1");
    put(store, pod("a"), "a2");
    remove(store, pod("b"));
    put(store, pod("b"), "b2");
  }
  Store store(options());
  EXPECT_EQ(words(watch(store, kFirstRevision)->take(kAll)),
            (Words{"+a1@2", "+b1@3", "~a1>a2@4", "-b1>last@5", "+b2@6"}));
  EXPECT_EQ(words(watch(store, 4)->take(kAll)), (Words{"-b1>last@5", "+b2@6"}));
}

// The oldest change that is kept still knows what was before it.
TEST_F(WatchTest, PreviousOfTheOldestSurvivesCompaction) {
  Options few = options();
  few.keep_changes = 1;
  {
    Store store(few);
    put(store, pod("a"), "first");
    for (int i = 0; i < 2000; ++i) put(store, pod("b"), std::to_string(i));
    put(store, pod("a"), "second");
  }
  Store store(few);
  EXPECT_EQ(words(watch(store, store.oldest())->take(kAll)), (Words{"~first>second@2003"}));
}

// News of these can wait.
void put_late(Store& store, const Key& key, const std::string& text) {
  const ObjectPtr there = store.find(key);
  EXPECT_TRUE(store
                  .write({.key = key,
                          .expected = there ? there->revision : 0,
                          .text = text,
                          .news_can_wait = true})
                  .kept);
}

TEST_F(WatchTest, NewsThatCanWaitAreToldLater) {
  Store store(options());
  const auto all = watch(store, store.revision());
  EXPECT_TRUE(words(all->take(kAll)).empty());
  const auto comes_later = [&] {
    const int before = woken_;
    put_late(store, pod("a"), "a");
    const bool is_later = woken_ == before;
    while (woken_ == before) std::this_thread::yield();
    while (!all->take(kAll).changes.empty()) {
    }
    return is_later;
  };
  // A machine that stands still takes longer for a write than they wait.
  int attempts = 0;
  while (!comes_later()) ASSERT_LT(++attempts, 100);
}

TEST_F(WatchTest, NewsThatCanWaitAreToldAtOnceIfAskedFor) {
  Store store(options());
  const auto pods = watch(store, store.revision());
  const auto nodes = watch(store, store.revision(), {.resource = "nodes"});
  EXPECT_TRUE(words(pods->take(kAll)).empty());
  EXPECT_TRUE(words(nodes->take(kAll)).empty());
  put_late(store, pod("a"), "a1");
  put_late(store, pod("a"), "a2");
  store.hurry_news();
  EXPECT_EQ(woken_, 1);
  EXPECT_EQ(words(pods->take(kAll)), (Words{"+a1@2", "~a1>a2@3"}));
  store.hurry_news();
  EXPECT_EQ(woken_, 1);
}

TEST_F(WatchTest, NewsThatCanWaitComeWithOthers) {
  Store store(options());
  const auto all = watch(store, store.revision());
  EXPECT_TRUE(words(all->take(kAll)).empty());
  put_late(store, pod("a"), "a");
  put(store, pod("b"), "b");
  EXPECT_EQ(woken_, 1);
  EXPECT_EQ(words(all->take(kAll)), (Words{"+a@2", "+b@3"}));
}

TEST_F(WatchTest, WhoLooksByHimselfIsNotToldAgain) {
  Store store(options());
  const auto all = watch(store, store.revision());
  EXPECT_TRUE(words(all->take(kAll)).empty());
  put_late(store, pod("a"), "a");
  EXPECT_EQ(words(all->take(kAll)), (Words{"+a@2"}));
  EXPECT_TRUE(words(all->take(kAll)).empty());
  store.hurry_news();  // and whoever was being told is told
  const int before = woken_;
  EXPECT_LE(before, 1);
  put(store, pod("b"), "b");
  EXPECT_EQ(woken_, before + 1);
}

TEST_F(WatchTest, NobodyIsToldLateWhoIsGone) {
  Store store(options());
  for (int i = 0; i < 50; ++i) {
    const auto all = watch(store, store.revision());
    EXPECT_TRUE(words(all->take(kAll)).empty());
    put_late(store, pod("a"), std::to_string(i));
  }
  const int before = woken_;
  store.hurry_news();
  EXPECT_EQ(woken_, before);
}

TEST_F(WatchTest, ReadersKeepUpWithWriters) {
  constexpr int kWriters = 4;
  constexpr int kEach = 200;
  Store store(options());
  std::mutex mutex;
  std::condition_variable woken;
  bool awake = false;
  const auto all = store.watch({}, kFirstRevision, [&] {
    const std::lock_guard lock(mutex);
    awake = true;
    woken.notify_one();
  });
  std::vector<std::thread> writers;
  for (int t = 0; t < kWriters; ++t) {
    writers.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) put(store, pod(std::to_string(t)), std::to_string(i));
    });
  }
  Revision last = kFirstRevision;
  while (last < kFirstRevision + kWriters * kEach) {
    const Taken taken = all->take(7);
    ASSERT_FALSE(taken.expired);
    for (const ChangePtr& change : taken.changes) EXPECT_EQ(change->revision, ++last);
    if (!taken.changes.empty()) continue;
    EXPECT_GE(taken.up_to, last);
    std::unique_lock lock(mutex);
    ASSERT_TRUE(woken.wait_for(lock, std::chrono::minutes(1), [&] { return awake; }));
    awake = false;
  }
  for (std::thread& writer : writers) writer.join();
}

TEST_F(WatchTest, ComesAndGoesWhileOthersWrite) {
  Store store(options());
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) put(store, pod("a"), std::to_string(i));
  });
  for (int i = 0; i < 200; ++i) {
    std::atomic<bool> alive = true;
    auto here = store.watch({.resource = "pods"}, store.revision(), [&] { EXPECT_TRUE(alive); });
    while (!here->take(kAll).changes.empty()) {
    }
    here.reset();
    alive = false;
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace hearth::store
