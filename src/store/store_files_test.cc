// The store and its files: a disk that is full, copies, who may read them.
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "store/testing_internal.h"

namespace hearth::store {
namespace {

// As a full disk does: SQLite cannot write beyond this.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit less{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &less), 0);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit before_{};
  void (*old_handler_)(int) = nullptr;
};

using StoreFilesTest = StoreTest;

TEST_F(StoreFilesTest, AFullDiskIsAnErrorAndNotTheEnd) {
  Revision reached = 0;
  {
    Store store(options());
    put(store, pod("before"), "x");
    {
      const FileSizeLimit limit(100'000);
      std::optional<Error> error;
      for (int i = 0; i < 100 && !error; ++i) {
        reached = store.revision();
        try {
          put(store, pod("p" + std::to_string(i)), std::string(10'000, 'x'));
        } catch (const Error& caught) {
          error = caught;
        }
      }
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), Code::exhausted) << error->what();
      EXPECT_NE(std::string(error->what()).find(path()), std::string::npos);
      EXPECT_EQ(store.revision(), reached);
      EXPECT_THROW(put(store, pod("more"), std::string(100'000, 'x')), Error);
    }
    EXPECT_EQ(put(store, pod("after"), "y")->revision, reached + 1);
    EXPECT_EQ(store.find(pod("more")), nullptr);
  }
  Store store(options());
  EXPECT_EQ(store.revision(), reached + 1);
  EXPECT_EQ(store.find(pod("after"))->text, "y");
  EXPECT_EQ(store.find(pod("before"))->text, "x");
}

TEST_F(StoreFilesTest, BacksUpWhileItIsWrittenTo) {
  const std::string copy = folder_ + "/copy";
  std::map<std::string, Revision> before;
  {
    Store store(options());
    for (int i = 0; i < 500; ++i) {
      const std::string name = "p" + std::to_string(i);
      before[name] = put(store, pod(name), std::string(2000, 'x'))->revision;
    }
    std::atomic<bool> stop = false;
    std::thread writer([&] {
      for (int i = 0; !stop; ++i) put(store, pod("busy"), std::to_string(i));
    });
    store.backup(copy);
    stop = true;
    writer.join();
    EXPECT_EQ(error_of([&] { store.backup(copy); }).code(), Code::already_exists);
  }
  EXPECT_FALSE(std::filesystem::exists(copy + "-wal"));
  const std::string restored = folder_ + "/restored";
  restore(copy, restored);
  Store store({.path = restored});
  for (const auto& [name, revision] : before) {
    ASSERT_NE(store.find(pod(name)), nullptr);
    EXPECT_EQ(store.find(pod(name))->revision, revision);
  }
  put(store, pod("new"), "x");
}

TEST_F(StoreFilesTest, RestoresOnlyToWhereNothingIs) {
  const std::string copy = folder_ + "/copy";
  {
    Store store(options());
    put(store, pod("a"), "x");
    store.backup(copy);
    EXPECT_EQ(error_of([&] { restore(copy, path()); }).code(), Code::already_exists);
    EXPECT_EQ(error_of([&] { restore(path(), folder_ + "/other"); }).code(), Code::conflict);
  }
  EXPECT_EQ(error_of([&] { restore(copy, path()); }).code(), Code::already_exists);
  EXPECT_EQ(error_of([&] { restore(folder_ + "/none", folder_ + "/other"); }).code(),
            Code::not_found);
  EXPECT_EQ(Store(options()).find(pod("a"))->text, "x");
}

TEST_F(StoreFilesTest, AnEmptyFileIsNoBackup) {
  const std::string empty = folder_ + "/empty";
  std::ofstream{empty};

  EXPECT_EQ(error_of([&] { restore(empty, path()); }).code(), Code::invalid);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(StoreFilesTest, FilesAreForTheirOwnerOnly) {
  const std::string copy = folder_ + "/copy";
  const std::string restored = folder_ + "/restored";
  Store store(options());
  put(store, pod("a"), "x");
  store.backup(copy);
  std::filesystem::permissions(copy, std::filesystem::perms(0644));
  restore(copy, restored);
  for (const std::string& file : {path(), path() + "-wal", path() + "-mark", restored}) {
    EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0600)) << file;
  }
}

}  // namespace
}  // namespace hearth::store
