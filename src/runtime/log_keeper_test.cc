// The keeper against a guest that is played by the test: what it writes, and what it puts up with.
#include "runtime/log_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "linux/channel.h"
#include "runtime/shell.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;
using guest::Output;

class LogKeeperTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/hearth-keeper-test-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    path_ = path;
    std::filesystem::create_directories(path_ + "/logs");
    std::filesystem::create_directories(path_ + "/sandboxes/u1");
    logs_ = linux::open_file(path_ + "/logs", O_RDONLY | O_DIRECTORY);
    sandboxes_ = linux::open_file(path_ + "/sandboxes", O_RDONLY | O_DIRECTORY);
    unit_ = linux::open_file(path_ + "/sandboxes/u1", O_RDONLY | O_DIRECTORY);
    listen_ = linux::listen_at(unit_.get(), kGuestSocket);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  // The keeper's connection, as a guest sees it.
  linux::Channel accept() const {
    pollfd waiting{.fd = listen_.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&waiting, 1, 10'000), 1) << "nobody came";
    return linux::try_accept(listen_.get()).value();
  }
  // What it says next.
  static guest::LogRequest hear(linux::Channel& keeper) {
    const auto message = keeper.receive(Deadline::after(10s));
    return std::get<guest::LogRequest>(guest::parse_request(message.value().bytes));
  }
  static void say(linux::Channel& keeper, std::uint64_t position, const std::string& bytes) {
    keeper.send(
        encode(guest::Reply(Output{.bytes = bytes, .time = Time(5s), .position = position})));
  }

  static std::string text_of(const LogKeeper& keeper) {
    std::string text;
    for (const LogFile& file : keeper.open("u1")) {
      LogFileReader reader(file.fd.get(), file.start);
      while (const auto piece = reader.next()) text += piece->bytes;
    }
    return text;
  }

  void live_and_say(LogKeeper& keeper, const std::string& text) const {
    keeper.keep("u1", {});
    linux::Channel guest = accept();
    EXPECT_EQ(hear(guest).from, 0u);
    say(guest, 0, text);
    EXPECT_EQ(hear(guest).from, text.size());
  }
  ino_t inode_of_file() const {
    struct stat status{};
    EXPECT_EQ(::stat((path_ + "/logs/u1/00000000000000000000").c_str(), &status), 0);
    return status.st_ino;
  }

  std::string path_;
  linux::Fd logs_, sandboxes_, unit_, listen_;
};

TEST_F(LogKeeperTest, WritesDownWhatItHearsAndSaysSo) {
  LogKeeper keeper(logs_.get(), sandboxes_.get());
  keeper.keep("u1", {});
  keeper.keep("u1", {});  // once is enough
  linux::Channel guest = accept();
  const guest::LogRequest asked = hear(guest);
  EXPECT_TRUE(asked.keep);
  EXPECT_EQ(asked.from, 0u);
  EXPECT_TRUE(keeper.open("u1").empty()) << "no file before the first byte";

  say(guest, 0, "hello\n");
  EXPECT_EQ(hear(guest).from, 6u);
  EXPECT_EQ(text_of(keeper), "hello\n");
}

TEST_F(LogKeeperTest, ANewLifeGoesOnWhereTheFilesEnd) {
  {
    LogKeeper keeper(logs_.get(), sandboxes_.get());
    keeper.keep("u1", {});
    linux::Channel guest = accept();
    hear(guest);
    say(guest, 0, "hello\nwor");
    EXPECT_EQ(hear(guest).from, 9u);
  }
  LogKeeper again(logs_.get(), sandboxes_.get());
  EXPECT_EQ(again.list(), std::vector<std::string>{"u1"});
  again.keep("u1", {});
  linux::Channel guest = accept();
  EXPECT_EQ(hear(guest).from, 9u);
  say(guest, 9, "ld\n");
  hear(guest);

  EXPECT_EQ(text_of(again), "hello\nworld\n");
}

TEST_F(LogKeeperTest, WhatNobodyOpenedServesTheNextAndIsEmpty) {
  LogKeeper keeper(logs_.get(), sandboxes_.get());
  live_and_say(keeper, "a secret\n");
  const ino_t first = inode_of_file();
  keeper.remove("u1");
  EXPECT_TRUE(keeper.list().empty());
  keeper.keep("u1", {});
  linux::Channel guest = accept();
  EXPECT_EQ(hear(guest).from, 0u);
  EXPECT_EQ(inode_of_file(), first);
  EXPECT_EQ(text_of(keeper), "");
  say(guest, 0, "mine\n");
  hear(guest);
  EXPECT_EQ(text_of(keeper), "mine\n");
}

TEST_F(LogKeeperTest, WhatSomebodyOpenedIsNotGivenToTheNext) {
  LogKeeper keeper(logs_.get(), sandboxes_.get());
  live_and_say(keeper, "one\n");
  const std::vector<LogFile> held = keeper.open("u1");
  ASSERT_EQ(held.size(), 1u);
  keeper.remove("u1");
  live_and_say(keeper, "another's\n");
  LogFileReader reader(held.front().fd.get(), held.front().start);
  EXPECT_EQ(reader.next().value().bytes, "one\n");
  EXPECT_FALSE(reader.next());
}

TEST_F(LogKeeperTest, WhatAnEarlierLifeKeptIsNotGivenToTheNext) {
  std::vector<LogFile> held;
  {
    LogKeeper keeper(logs_.get(), sandboxes_.get());
    live_and_say(keeper, "one\n");
    held = keeper.open("u1");
  }
  LogKeeper again(logs_.get(), sandboxes_.get());
  again.keep("u1", {});
  accept();
  again.remove("u1");
  live_and_say(again, "another's\n");
  LogFileReader reader(held.front().fd.get(), held.front().start);
  EXPECT_EQ(reader.next().value().bytes, "one\n");
  EXPECT_FALSE(reader.next());
}

TEST_F(LogKeeperTest, NoSpareFolderIsLeftAtTheEnd) {
  {
    LogKeeper keeper(logs_.get(), sandboxes_.get());
    live_and_say(keeper, "one\n");
    keeper.remove("u1");
    EXPECT_FALSE(std::filesystem::is_empty(path_ + "/logs"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(path_ + "/logs"));
}

TEST_F(LogKeeperTest, ComesBackToAGuestThatHungUp) {
  LogKeeper keeper(logs_.get(), sandboxes_.get());
  keeper.keep("u1", {});
  {
    linux::Channel guest = accept();
    hear(guest);
    say(guest, 0, "one\n");
    hear(guest);
  }
  linux::Channel guest = accept();
  EXPECT_EQ(hear(guest).from, 4u);
}

TEST_F(LogKeeperTest, HearsNoMoreOfAGuestThatTalksNonsense) {
  const std::string garbage = "\xff\xff\xff";
  const std::string too_large = encode(guest::Reply(Output{.bytes = std::string(100'000, 'x')}));
  const std::string empty = encode(guest::Reply(Output{}));
  const std::string other = encode(guest::Reply(guest::Started{.pid = 1}));
  const std::string past_the_end =
      encode(guest::Reply(Output{.bytes = "xx", .position = UINT64_MAX}));
  for (const std::string& words : {garbage, too_large, empty, other, past_the_end}) {
    LogKeeper keeper(logs_.get(), sandboxes_.get());
    keeper.keep("u1", {});
    linux::Channel guest = accept();
    hear(guest);
    guest.send(words);
    EXPECT_FALSE(guest.receive(Deadline::after(10s)).has_value()) << "it hung up";
    EXPECT_EQ(text_of(keeper), "");
    keeper.remove("u1");
  }
}

TEST_F(LogKeeperTest, AGuestThatRepeatsItselfChangesNothing) {
  LogKeeper keeper(logs_.get(), sandboxes_.get());
  keeper.keep("u1", {});
  linux::Channel guest = accept();
  hear(guest);
  say(guest, 0, "truth\n");
  hear(guest);
  say(guest, 0, "other\n");
  EXPECT_FALSE(guest.receive(Deadline::after(10s)).has_value());
  EXPECT_EQ(text_of(keeper), "truth\n");
}

// However much is said: the disk has an end, and so has what is read in a second.
TEST_F(LogKeeperTest, AFloodIsBounded) {
  LogKeeper keeper(logs_.get(), sandboxes_.get());
  constexpr LogLimits kLimits{.bytes = 64 << 10, .files = 2};
  keeper.keep("u1", kLimits);
  linux::Channel guest = accept();
  hear(guest);
  const std::string newlines(16'000, '\n');
  std::uint64_t position = 0;
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 30; ++i) {  // more than two seconds' worth
    say(guest, position, newlines);
    position += newlines.size();
    EXPECT_EQ(hear(guest).from, position);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - began, 1s);
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path_ + "/logs/u1"))
    bytes += entry.file_size();
  EXPECT_LE(bytes, kLimits.bytes * kLimits.files);
}

TEST_F(LogKeeperTest, TakesEverythingAway) {
  LogKeeper keeper(logs_.get(), sandboxes_.get());
  keeper.keep("u1", {});
  linux::Channel guest = accept();
  hear(guest);
  say(guest, 0, "hello\n");
  hear(guest);
  keeper.remove("u1");
  keeper.remove("never there");

  EXPECT_FALSE(guest.receive(Deadline::after(10s)).has_value());
  EXPECT_FALSE(std::filesystem::exists(path_ + "/logs/u1"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_ + "/logs"))
    EXPECT_TRUE(entry.is_directory() || entry.file_size() == 0) << entry.path();
  EXPECT_FALSE(keeper.has("u1"));
  EXPECT_TRUE(keeper.open("u1").empty());
}

TEST_F(LogKeeperTest, ASandboxThatIsGoneIsAnError) {
  LogKeeper keeper(logs_.get(), sandboxes_.get());
  EXPECT_THROW(keeper.keep("u2", {}), Error);
  keeper.remove("u2");
  EXPECT_TRUE(std::filesystem::is_empty(path_ + "/logs"));
}

}  // namespace
}  // namespace hearth::runtime
