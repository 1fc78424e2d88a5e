// What the store's tests share: a folder, and short words for writes.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "store/store.h"

namespace hearth::store {

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    // In memory where there is a place for it: an fsync costs nothing there, and hides nothing that
    // these tests look for.
    std::string path = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    path += "/hearth-store-test-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    folder_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/state.db"; }
  Options options() const { return {.path = path(), .clock = &clock_}; }

  std::string folder_;
  ManualClock clock_;
};

using Words = std::vector<std::string>;

inline Key pod(const std::string& name, const std::string& ns = "default") {
  return {.resource = "pods", .ns = ns, .name = name};
}

inline ObjectPtr put(Store& store, const Key& key, const std::string& text) {
  const ObjectPtr there = store.find(key);
  const Outcome outcome =
      store.write({.key = key, .expected = there ? there->revision : 0, .text = text});
  EXPECT_TRUE(outcome.kept);
  return outcome.object;
}

inline ObjectPtr remove(Store& store, const Key& key, const std::string& text = "last") {
  const ObjectPtr there = store.find(key);
  const Outcome outcome = store.write(
      {.key = key, .expected = there ? there->revision : 0, .remove = true, .text = text});
  EXPECT_TRUE(outcome.kept);
  return outcome.object;
}

inline Words names(const Snapshot& snapshot) {
  Words all;
  for (const ObjectPtr& object : snapshot.objects) all.push_back(object->key.name);
  return all;
}

// "text@revision" of each, for comparisons that print well.
inline Words texts(const Snapshot& snapshot) {
  Words all;
  for (const ObjectPtr& object : snapshot.objects) {
    all.push_back(object->text + "@" + std::to_string(object->revision));
  }
  return all;
}

// What `f` throws; fails the test if it does not.
template <typename F>
Error error_of(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {Code::internal, ""};
}

}  // namespace hearth::store
