// Beneath SQLite: commits that are one write, a log that is written over, and nobody else's hands.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>

#include "linux/fd.h"
#include "store/testing_internal.h"

namespace hearth::store {
namespace {

using WriteAheadFileTest = StoreTest;

// How often this process has asked the kernel to write something.
long count_writes() {
  std::ifstream in("/proc/self/io");
  for (std::string name; in >> name;) {
    long value = 0;
    in >> value;
    if (name == "syscw:") return value;
  }
  return -1;
}

std::string noise(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

TEST_F(WriteAheadFileTest, ACommitIsOneWriteAndOneMark) {
  if (count_writes() < 0) GTEST_SKIP() << "this kernel does not count writes (/proc/self/io)";
  Store store(options());
  put(store, pod("first"), "x");
  const long before = count_writes();
  put(store, pod("a"), noise(100'000));  // 25 pages
  EXPECT_EQ(count_writes() - before, 2);
}

TEST_F(WriteAheadFileTest, WhatIsLongerThanOneWriteIsWhole) {
  const std::size_t sizes[] = {255 << 10, 256 << 10, 257 << 10, 5 << 20};
  {
    Store store(options());
    for (const std::size_t size : sizes) {
      store.write(
          {.key = pod(std::to_string(size)), .text = noise(size), .durability = Durability::power});
    }
  }
  Store store(options());
  for (const std::size_t size : sizes) {
    EXPECT_TRUE(store.find(pod(std::to_string(size)))->text == noise(size)) << size;
  }
}

// Written to without a pause, the log must not grow for ever: it is copied meanwhile.
TEST_F(WriteAheadFileTest, TheLogIsWrittenOver) {
  constexpr int kThreads = 4;
  constexpr int kEach = 150;
  const std::string text = noise(100'000);
  {
    Store store(options());
    std::vector<std::jthread> writers;
    for (int t = 0; t < kThreads; ++t) {
      writers.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          store.write({.key = pod(std::to_string(t) + "-" + std::to_string(i)), .text = text});
        }
      });
    }
    writers.clear();
    // 60 MB went through it.
    EXPECT_LT(std::filesystem::file_size(path() + "-wal"), 45'000'000U);
  }
  Store store(options());
  EXPECT_EQ(store.revision(), kFirstRevision + kThreads * kEach);
  EXPECT_EQ(store.find(pod("3-149"))->text, text);
}

// What comes after a log was begun anew is found, also if nobody closed the store.
TEST_F(WriteAheadFileTest, ALogThatWasBegunAnewIsRead) {
  const std::string copy = folder_ + "/copy";
  const std::string text = noise(100'000);
  {
    Store store(options());
    for (int i = 0; i < 250; ++i) put(store, pod("p"), text);  // 25 MB
    put(store, pod("last"), "x");
    for (const char* suffix : {"", "-wal", "-mark"}) {
      std::filesystem::copy_file(path() + suffix, copy + suffix);
    }
  }
  EXPECT_EQ(Store({.path = copy}).find(pod("last"))->text, "x");
}

// Of another process, to whom SQLite would have to say whether it may read.
bool may_read(const std::string& path) {
  const linux::Fd file = linux::open_file(path, O_RDWR);
  struct flock lock{};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = 0x40000002;  // "SHARED_FIRST" of SQLite's file format
  lock.l_len = 510;
  return ::fcntl(file.get(), F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

TEST_F(WriteAheadFileTest, OtherProgramsAreKeptOut) {
  const auto look = [&] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(may_read(path()) ? 1 : 0);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WEXITSTATUS(status) == 1;
  };
  {
    Store store(options());
    put(store, pod("a"), "x");
    EXPECT_FALSE(look());
    EXPECT_FALSE(std::filesystem::exists(path() + "-shm"));
  }
  EXPECT_TRUE(look());
}

}  // namespace
}  // namespace hearth::store
