#include "runtime/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "linux/files.h"

namespace hearth::runtime {
namespace {

using guest::Output;
using guest::Stream;

constexpr Time kThen{std::chrono::seconds(1'700'000'000)};

class LogFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/hearth-log-test-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    path_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  linux::Fd folder() const { return linux::open_file(path_, O_RDONLY | O_DIRECTORY); }
  LogWriter writer(LogLimits limits = {}) const { return {folder(), limits}; }

  static Output output(std::uint64_t position, const std::string& bytes,
                       Stream stream = Stream::output) {
    return {.bytes = bytes, .stream = stream, .time = kThen, .position = position};
  }

  std::string read_all() const {
    std::string text;
    for (const LogFile& file : open_log_files(folder().get())) {
      LogFileReader reader(file.fd.get(), file.start);
      while (const auto piece = reader.next()) text += piece->bytes;
    }
    return text;
  }

  std::uint64_t bytes_on_disk() const {
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) bytes += entry.file_size();
    return bytes;
  }

  std::string path_;
};

TEST_F(LogFileTest, IsTextThatOtherToolsRead) {
  writer().write(output(0, "a line\nand a part"));

  std::ifstream file(path_ + "/00000000000000000000");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(text,
            "2023-11-14T22:13:20.000000000Z stdout F a line\n"
            "2023-11-14T22:13:20.000000000Z stdout P and a part\n");
}

TEST_F(LogFileTest, RefusesWhatIsNoLine) {
  EXPECT_TRUE(parse_log_line("2023-11-14T22:13:20.000000000Z stderr P "));
  for (const char* line : {"", " ", "stdout F x", "2023-11-14T22:13:20Z stdin F x",
                           "2023-11-14T22:13:20Z stdout X x", "2023-11-14T22:13:20Z stdout"}) {
    EXPECT_FALSE(parse_log_line(line)) << line;
  }
}

TEST_F(LogFileTest, GivesBackEveryByteWithItsPositionAndStream) {
  const std::string odd("bell\a nul\0 \r tab\t\n\n\nend", 22);
  LogWriter log = writer();
  log.write(output(0, odd));
  log.write(output(odd.size(), "oh\n", Stream::error));
  EXPECT_EQ(log.position(), odd.size() + 3);

  const auto files = open_log_files(folder().get());
  ASSERT_EQ(files.size(), 1u);
  LogFileReader reader(files[0].fd.get(), files[0].start);
  std::string seen;
  std::optional<Output> last;
  while (const auto piece = reader.next()) {
    EXPECT_EQ(piece->position, seen.size());
    seen += piece->bytes;
    last = piece;
  }
  EXPECT_EQ(seen, odd + "oh\n");
  EXPECT_EQ(last->stream, Stream::error);
  EXPECT_EQ(last->time, kThen);
}

TEST_F(LogFileTest, GoesOnWhereAnEarlierLifeStopped) {
  writer().write(output(0, "one\ntw"));
  // It died in the middle of a line.
  std::ofstream(path_ + "/00000000000000000000", std::ios::app) << "2023-11-14T22:13:20.0000";

  LogWriter log = writer();
  EXPECT_EQ(log.position(), 6u);
  log.write(output(6, "o\nthree\n"));

  EXPECT_EQ(read_all(), "one\ntwo\nthree\n");
}

TEST_F(LogFileTest, AGapBeginsAFile) {
  LogWriter log = writer();
  log.write(output(0, "one\n"));
  log.write(output(1000, "later\n"));

  const auto files = open_log_files(folder().get());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[1].start, 1000u);
  EXPECT_EQ(read_all(), "one\nlater\n");
}

TEST_F(LogFileTest, WhatWasWrittenIsNotWrittenAgain) {
  LogWriter log = writer();
  log.write(output(0, "one\n"));
  EXPECT_THROW(log.write(output(3, "x")), Error);
  EXPECT_THROW(log.write(output(UINT64_MAX, "xyz")), Error);
}

TEST_F(LogFileTest, HasAnEndToItsSizeWhateverIsWritten) {
  constexpr LogLimits kLimits{.bytes = 64 << 10, .files = 3};
  LogWriter log = writer(kLimits);
  // The worst there is: a line of the file for each byte.
  const std::string newlines(60'000, '\n');
  const std::string long_line(60'000, 'x');
  for (int i = 0; i < 20; ++i) {
    log.write(output(log.position(), i % 2 == 0 ? newlines : long_line));
    EXPECT_LE(bytes_on_disk(), kLimits.bytes * kLimits.files);
  }
  EXPECT_LE(open_log_files(folder().get()).size(), kLimits.files);
  EXPECT_EQ(log.position(), 20u * 60'000);
  EXPECT_TRUE(long_line.ends_with(read_all().substr(read_all().size() - 1000)));
}

TEST_F(LogFileTest, ALineThatRotationBrokeIsWholeWhenRead) {
  LogWriter log = writer({.bytes = 64 << 10, .files = 10});
  std::string all;
  for (int i = 0; i < 100; ++i) {
    const std::string part = std::string(3000, static_cast<char>('a' + i % 26));
    log.write(output(log.position(), part));
    all += part;
  }
  EXPECT_GT(open_log_files(folder().get()).size(), 3u);
  EXPECT_EQ(read_all(), all);
}

TEST_F(LogFileTest, AFileThatIsNotOursEndsQuietly) {
  std::ofstream(path_ + "/00000000000000000000") << std::string(200'000, 'x');
  std::ofstream(path_ + "/something") << "else\n";
  EXPECT_EQ(read_all(), "");
  EXPECT_EQ(writer().position(), 0u);
}

}  // namespace
}  // namespace hearth::runtime
