#include "store/store.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "store/testing_internal.h"

namespace hearth::store {
namespace {

TEST_F(StoreTest, KeepsWhatIsWrittenUnderTheNextRevision) {
  Store store(options());
  EXPECT_EQ(store.revision(), kFirstRevision);

  const Outcome first = store.write({.key = pod("a"), .text = "one", .tags = {{"app", "web"}}});
  ASSERT_TRUE(first.kept);
  EXPECT_EQ(first.object->revision, 2u);
  EXPECT_EQ(first.object->created, 2u);
  EXPECT_EQ(store.find(pod("a")), first.object);
  EXPECT_EQ(first.object->tags.find("app"), "web");

  const Outcome second = store.write({.key = pod("a"), .expected = 2, .text = "two"});
  ASSERT_TRUE(second.kept);
  EXPECT_EQ(second.object->revision, 3u);
  EXPECT_EQ(second.object->created, 2u);
  EXPECT_EQ(store.find(pod("a"))->text, "two");
  EXPECT_EQ(store.revision(), 3u);
  EXPECT_EQ(store.find(pod("b")), nullptr);
}

TEST_F(StoreTest, RefusesAWriterWhoSawSomethingElse) {
  Store store(options());
  const ObjectPtr there = put(store, pod("a"), "one");

  const Outcome exists = store.write({.key = pod("a"), .text = "mine"});
  EXPECT_FALSE(exists.kept);
  EXPECT_EQ(exists.object, there);

  const Outcome stale = store.write({.key = pod("a"), .expected = 1, .text = "mine"});
  EXPECT_FALSE(stale.kept);
  EXPECT_EQ(stale.object, there);

  const Outcome gone = store.write({.key = pod("b"), .expected = 2, .text = "mine"});
  EXPECT_FALSE(gone.kept);
  EXPECT_EQ(gone.object, nullptr);

  EXPECT_EQ(store.revision(), there->revision);
}

TEST_F(StoreTest, RemovesAndRemembersTheLastState) {
  Store store(options());
  put(store, pod("a"), "one");

  const Outcome removed =
      store.write({.key = pod("a"), .expected = 2, .remove = true, .text = "last", .hole = 4});
  ASSERT_TRUE(removed.kept);
  EXPECT_EQ(removed.object->text, "last3");
  EXPECT_EQ(removed.object->revision, 3u);
  EXPECT_EQ(removed.object->created, 2u);
  EXPECT_EQ(store.find(pod("a")), nullptr);

  EXPECT_EQ(put(store, pod("a"), "again")->created, 4u);
}

TEST_F(StoreTest, PutsTheRevisionIntoItsHole) {
  Store store(options());
  EXPECT_EQ(store.write({.key = pod("a"), .text = "{rv:\"\"}", .hole = 5}).object->text,
            "{rv:\"2\"}");
  EXPECT_EQ(store.write({.key = pod("b"), .text = "", .hole = 0}).object->text, "3");
}

TEST_F(StoreTest, ATextWithRoomForItsRevisionIsNotCopied) {
  Store store(options());
  const std::string rest(1000, 'x');
  const auto keep = [&](const std::string& name, std::size_t room) {
    std::string text;
    text.reserve(2 + rest.size() + room);
    text.append("{}").append(rest);
    const char* before = text.data();
    const ObjectPtr kept =
        store.write({.key = pod(name), .text = std::move(text), .hole = 1}).object;
    EXPECT_EQ(kept->text, "{" + std::to_string(kept->revision) + "}" + rest);
    EXPECT_LE(kept->text.capacity(), kept->text.size() + 24) << "nothing is kept in vain";
    return kept->text.data() == before;
  };
  EXPECT_TRUE(keep("a", 20));
  EXPECT_FALSE(keep("b", 0));
  EXPECT_FALSE(keep("c", 500));
}

struct Settled final : Companion {
  void settle(Revision revision) noexcept override { at = revision; }
  Revision at = 0;
};

TEST_F(StoreTest, CarriesACompanionForAsLongAsSomebodyHoldsIt) {
  Store store(options());
  auto companion = std::make_shared<Settled>();

  store.write({.key = pod("a"), .text = "one", .companion = companion});

  EXPECT_EQ(companion->at, 2u);
  EXPECT_EQ(store.find(pod("a"))->companion.lock(), companion);
  companion.reset();
  EXPECT_EQ(store.find(pod("a"))->companion.lock(), nullptr);
}

TEST_F(StoreTest, AWriteThatIsRefusedSettlesNothing) {
  Store store(options());
  put(store, pod("a"), "one");
  const auto companion = std::make_shared<Settled>();

  EXPECT_FALSE(store.write({.key = pod("a"), .text = "two", .companion = companion}).kept);

  EXPECT_EQ(companion->at, 0u);
}

TEST_F(StoreTest, KeepsWritesTogetherOrNone) {
  Store store(options());
  put(store, pod("there"), "one");
  const auto together = [&](Revision seen) {
    return store.write_together({{.key = pod("there"), .expected = seen, .text = "two"},
                                 {.key = pod("new"), .text = "made"}});
  };

  const std::vector<Outcome> refused = together(1);
  EXPECT_FALSE(refused[0].kept || refused[1].kept);
  EXPECT_EQ(refused[0].object->text, "one");
  EXPECT_EQ(refused[1].object, nullptr);
  EXPECT_EQ(store.find(pod("new")), nullptr);
  EXPECT_EQ(store.revision(), 2u);

  const std::vector<Outcome> kept = together(2);
  EXPECT_TRUE(kept[0].kept && kept[1].kept);
  EXPECT_EQ(kept[0].object->revision, 3u);
  EXPECT_EQ(kept[1].object->revision, 4u);
  EXPECT_EQ(store.find(pod("there"))->text, "two");
  EXPECT_EQ(store.find(pod("new")), kept[1].object);
}

TEST_F(StoreTest, WritesOfOneObjectCannotBeKeptTogether) {
  Store store(options());
  const Error error = error_of([&] {
    store.write_together({{.key = pod("a"), .text = "one"}, {.key = pod("a"), .text = "two"}});
  });
  EXPECT_EQ(error.code(), Code::invalid);
  EXPECT_TRUE(store.write_together({}).empty());
  EXPECT_EQ(store.revision(), kFirstRevision);
}

TEST_F(StoreTest, NobodyComesBetweenWritesThatAreKeptTogether) {
  Store store(options());
  constexpr int kPairs = 50;
  constexpr int kWriters = 4;
  std::vector<std::jthread> writers;
  std::atomic<int> torn = 0;
  for (int writer = 0; writer < kWriters; ++writer)
    writers.emplace_back([&, writer] {
      for (int i = 0; i < kPairs; ++i) {
        const std::string name = std::to_string(writer) + "-" + std::to_string(i);
        const auto kept = store.write_together(
            {{.key = pod(name), .text = "left"}, {.key = pod(name, "other"), .text = "right"}});
        if (!kept[0].kept || kept[1].object->revision != kept[0].object->revision + 1) ++torn;
      }
    });
  writers.clear();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(store.revision(), kFirstRevision + 2u * kPairs * kWriters);
}

TEST_F(StoreTest, RefusesWritesThatMakeNoSense) {
  Store store(options());
  const auto code = [&](Write write) {
    return error_of([&] { store.write(std::move(write)); }).code();
  };
  EXPECT_EQ(code({.key = {.resource = "", .ns = "n", .name = "a"}}), Code::invalid);
  EXPECT_EQ(code({.key = pod("")}), Code::invalid);
  EXPECT_EQ(code({.key = pod("a"), .text = "abc", .hole = 4}), Code::invalid);
  EXPECT_EQ(code({.key = pod("a"), .remove = true}), Code::invalid);
  EXPECT_EQ(code({.key = pod("a"), .text = std::string(7 << 20, 'x')}), Code::invalid);
  EXPECT_EQ(store.revision(), kFirstRevision);
}

TEST_F(StoreTest, KeepsAnyBytes) {
  const std::string bytes("\0\xff'\"\n\0", 6);
  const Key key{.resource = "a" + bytes, .ns = "b" + bytes, .name = "c" + bytes};
  {
    Store store(options());
    store.write({.key = key, .text = bytes, .tags = {{bytes, bytes}, {"", ""}}});
  }
  Store store(options());
  const ObjectPtr object = store.find(key);
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(object->text, bytes);
  EXPECT_EQ(object->tags, (Tags{{bytes, bytes}, {"", ""}}));
}

TEST_F(StoreTest, ListsByNamespaceAndName) {
  Store store(options());
  for (const char* name : {"c", "a", "b"}) put(store, pod(name, "two"), name);
  put(store, pod("z", "one"), "z");
  put(store, {.resource = "nodes", .ns = "", .name = "n"}, "n");

  EXPECT_EQ(names(store.list({.resource = "pods"})), (Words{"z", "a", "b", "c"}));
  EXPECT_EQ(names(store.list({.resource = "pods", .ns = "two"})), (Words{"a", "b", "c"}));
  EXPECT_TRUE(names(store.list({.resource = "pods", .ns = "t"})).empty());
  EXPECT_EQ(names(store.list({.resource = "nodes"})), (Words{"n"}));
  EXPECT_TRUE(names(store.list({.resource = "secrets"})).empty());
  EXPECT_EQ(store.list({.resource = "secrets"}).revision, store.revision());
}

TEST_F(StoreTest, ListsPageByPage) {
  Store store(options());
  for (const char* name : {"a", "b", "c", "d", "e"}) put(store, pod(name), name);

  const Snapshot first = store.list({.resource = "pods", .limit = 2});
  EXPECT_EQ(names(first), (Words{"a", "b"}));
  EXPECT_EQ(first.remaining, 3u);
  const Snapshot second =
      store.list({.resource = "pods", .ns = "default", .after = {{"default", "b"}}, .limit = 2});
  EXPECT_EQ(names(second), (Words{"c", "d"}));
  EXPECT_EQ(second.remaining, 1u);
  const Snapshot last = store.list({.resource = "pods", .after = {{"default", "d"}}, .limit = 2});
  EXPECT_EQ(names(last), (Words{"e"}));
  EXPECT_EQ(last.remaining, 0u);
  // A page that begins in another namespace than was asked for.
  EXPECT_EQ(names(store.list({.resource = "pods", .ns = "default", .after = {{"a", "x"}}})),
            (Words{"a", "b", "c", "d", "e"}));
  EXPECT_TRUE(
      names(store.list({.resource = "pods", .ns = "default", .after = {{"z", "x"}}})).empty());
}

TEST_F(StoreTest, ListsThePast) {
  Store store(options());
  put(store, pod("a"), "a1");
  put(store, pod("b"), "b1");
  put(store, pod("d"), "d1");
  const Revision then = store.revision();
  put(store, pod("a"), "a2");
  put(store, pod("a"), "a3");
  remove(store, pod("b"));
  put(store, pod("c"), "c1");
  remove(store, pod("d"));
  put(store, pod("d"), "d2");

  const auto at = [&](const ListQuery& query, Revision revision) {
    return store.list_at(query, revision).value();
  };
  const ListQuery all{.resource = "pods"};
  EXPECT_EQ(texts(at(all, then)), (Words{"a1@2", "b1@3", "d1@4"}));
  EXPECT_EQ(texts(at(all, then + 1)), (Words{"a2@5", "b1@3", "d1@4"}));
  EXPECT_EQ(texts(at(all, store.revision())), (Words{"a3@6", "c1@8", "d2@10"}));
  EXPECT_TRUE(texts(at(all, kFirstRevision)).empty());
  EXPECT_EQ(at(all, then).revision, then);

  const Snapshot page = at({.resource = "pods", .limit = 1}, then);
  EXPECT_EQ(texts(page), (Words{"a1@2"}));
  EXPECT_EQ(page.remaining, 2u);
  const Snapshot rest = at({.resource = "pods", .after = {{"default", "a"}}, .limit = 1}, then);
  EXPECT_EQ(texts(rest), (Words{"b1@3"}));
  EXPECT_EQ(rest.remaining, 1u);

  EXPECT_EQ(error_of([&] { store.list_at(all, store.revision() + 1); }).code(), Code::invalid);
}

TEST_F(StoreTest, ForgetsThePastInTheEnd) {
  Store store(options());
  put(store, pod("a"), "one");
  clock_.advance(std::chrono::minutes(4));
  put(store, pod("a"), "two");
  EXPECT_EQ(store.oldest(), kFirstRevision);
  clock_.advance(std::chrono::minutes(2));
  put(store, pod("a"), "three");  // six minutes after the first
  EXPECT_EQ(store.oldest(), 2u);
  EXPECT_FALSE(store.list_at({.resource = "pods"}, 1));
  EXPECT_EQ(texts(*store.list_at({.resource = "pods"}, 2)), (Words{"one@2"}));
}

TEST_F(StoreTest, HistoryHasAnEndInNumberAndInBytes) {
  Options few = options();
  few.keep_changes = 3;
  Store store(few);
  for (int i = 0; i < 10; ++i) put(store, pod("a"), std::to_string(i));
  EXPECT_EQ(store.oldest(), store.revision() - 3);

  Options small = options();
  small.path += "2";
  small.keep_bytes = 100;
  Store other(small);
  for (int i = 0; i < 10; ++i) put(other, pod("a"), std::string(30, 'x'));
  EXPECT_EQ(other.oldest(), other.revision() - 3);
}

TEST_F(StoreTest, IsTheSameAfterItWasClosed) {
  Snapshot before;
  Snapshot past;
  {
    Store store(options());
    put(store, pod("a"), "a1");
    put(store, pod("b"), "b1");
    put(store, pod("a"), "a2");
    remove(store, pod("b"));
    before = store.list({.resource = "pods"});
    past = *store.list_at({.resource = "pods"}, 3);
  }
  Store store(options());
  EXPECT_EQ(texts(store.list({.resource = "pods"})), texts(before));
  EXPECT_EQ(store.revision(), before.revision);
  EXPECT_EQ(store.find(pod("a"))->created, 2u);
  EXPECT_EQ(texts(*store.list_at({.resource = "pods"}, 3)), texts(past));
  EXPECT_EQ(put(store, pod("b"), "b2")->revision, before.revision + 1);
}

// Compaction removes rows as new ones come; what is left must tell the same story.
TEST_F(StoreTest, CompactionLosesNothingThatIsStillKept) {
  Options few = options();
  few.keep_changes = 10;
  std::map<std::string, std::string> expected;
  Revision oldest = 0;
  std::vector<std::string> past;
  {
    Store store(few);
    put(store, pod("old"), "never changed");
    for (int i = 0; i < 3000; ++i) {
      const std::string name = "p" + std::to_string(i % 37);
      if (i % 5 == 0 && store.find(pod(name))) {
        remove(store, pod(name));
        expected.erase(name);
      } else {
        expected[name] = "v" + std::to_string(i);
        put(store, pod(name), expected[name]);
      }
    }
    oldest = store.oldest();
    past = texts(*store.list_at({.resource = "pods"}, oldest));
  }
  EXPECT_LT(std::filesystem::file_size(path()), 400'000u);  // 3000 rows would be more
  Store store(few);
  EXPECT_EQ(store.oldest(), oldest);
  EXPECT_EQ(store.find(pod("old"))->text, "never changed");
  EXPECT_EQ(texts(*store.list_at({.resource = "pods"}, oldest)), past);
  EXPECT_EQ(store.list({.resource = "pods"}).objects.size(), expected.size() + 1);
  for (const auto& [name, text] : expected) EXPECT_EQ(store.find(pod(name))->text, text);
}

TEST_F(StoreTest, TombstonesGoAndTheRevisionStays) {
  Options none = options();
  none.keep_changes = 0;
  Revision last = 0;
  {
    Store store(none);
    for (int i = 0; i < 1000; ++i) {
      put(store, pod("a"), "x");
      remove(store, pod("a"));
    }
    last = store.revision();
  }
  Store store(none);
  EXPECT_EQ(store.revision(), last);
  EXPECT_EQ(store.oldest(), last);
  EXPECT_TRUE(store.list({.resource = "pods"}).objects.empty());
}

TEST_F(StoreTest, ManyWritersEachGetTheirOwnRevision) {
  constexpr int kThreads = 8;
  constexpr int kWrites = 100;
  Store store(options());
  std::vector<std::vector<Revision>> seen(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kWrites; ++i) {
        const Key key = pod(std::to_string(t) + "-" + std::to_string(i));
        const Outcome outcome =
            store.write({.key = key,
                         .text = "x",
                         .durability = i % 50 == 0 ? Durability::power : Durability::process});
        ASSERT_TRUE(outcome.kept);
        EXPECT_EQ(store.find(key), outcome.object);  // one reads what one wrote
        seen[t].push_back(outcome.object->revision);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Revision> all;
  for (const auto& mine : seen) {
    EXPECT_TRUE(std::ranges::is_sorted(mine));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::ranges::sort(all);
  ASSERT_EQ(all.size(), static_cast<std::size_t>(kThreads * kWrites));
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], kFirstRevision + 1 + i);
}

// Writes of one batch see each other: of those who saw the same revision, one wins.
TEST_F(StoreTest, OneObjectCountsEveryWriterOnce) {
  constexpr int kThreads = 8;
  constexpr int kEach = 50;
  Store store(options());
  put(store, pod("counter"), "0");
  std::atomic<int> conflicts = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      ObjectPtr there = store.find(pod("counter"));
      for (int done = 0; done < kEach;) {
        const Outcome outcome = store.write({.key = pod("counter"),
                                             .expected = there->revision,
                                             .text = std::to_string(std::stoi(there->text) + 1)});
        there = outcome.object;
        if (outcome.kept) {
          ++done;
        } else {
          ++conflicts;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.find(pod("counter"))->text, std::to_string(kThreads * kEach));
  EXPECT_EQ(store.revision(), kFirstRevision + 1 + kThreads * kEach);
}

TEST_F(StoreTest, WaitsForARevision) {
  Store store(options());
  EXPECT_TRUE(store.wait_for(kFirstRevision, Duration::zero()));
  EXPECT_FALSE(store.wait_for(kFirstRevision + 1, Duration::zero()));
  std::thread writer([&] { put(store, pod("a"), "x"); });
  EXPECT_TRUE(store.wait_for(kFirstRevision + 1, std::chrono::minutes(1)));
  writer.join();
}

TEST(TagsTest, AreSortedAndEachNameIsThereOnce) {
  const Tags tags{{"b", "1"}, {"a", "2"}, {"b", "3"}};
  std::vector<std::string> all;
  for (const auto& [name, value] : tags)
    all.push_back(std::string(name) + "=" + std::string(value));
  EXPECT_EQ(all, (Words{"a=2", "b=3"}));
  EXPECT_EQ(tags.find("b"), "3");
  EXPECT_EQ(tags.find("c"), std::nullopt);
  EXPECT_EQ(tags.find(""), std::nullopt);
  EXPECT_TRUE(Tags().empty());
  EXPECT_EQ(Tags::parse_packed(tags.packed()), tags);
}

}  // namespace
}  // namespace hearth::store
