// The access log without a gateway: its lines, its file, and what becomes of lines that nobody
// takes.
#include "gateway/access_log.h"

#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/id.h"
#include "metrics/registry.h"
#include "model/json.h"

namespace hearth::gateway {
namespace {

namespace fs = std::filesystem;

class AccessLogTest : public testing::Test {
 protected:
  AccessLogTest() : folder_(fs::temp_directory_path() / ("access-log-" + random_hex(6))) {
    fs::create_directory(folder_);
  }
  ~AccessLogTest() override { fs::remove_all(folder_); }

  std::string path() const { return folder_ / "access.log"; }
  static std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  std::uint64_t count(std::string_view what) {
    return registry_.counter(fmt::format("hearth_gateway_access_log_{}_total", what), "").value();
  }

  const fs::path folder_;
  metrics::Registry registry_;
};

TEST(AccessLine, SaysWhatIsKnownAsJson) {
  std::string line;
  render_access({.began = Time(std::chrono::microseconds(1'700'000'000'000'250)),
                 .took = std::chrono::microseconds(1500),
                 .route = "e2b",
                 .ns = "team-a",
                 .sandbox = "iabc",
                 .port = 8000,
                 .method = "GET",
                 .path = "/a\"b",
                 .status = 200,
                 .bytes_in = 1,
                 .bytes_out = 2,
                 .key = "0123",
                 .peer = "::1",
                 .is_cut = true},
                line);

  EXPECT_EQ(
      line,
      R"({"time":"2023-11-14T22:13:20.000250Z","route":"e2b","namespace":"team-a",)"
      R"("sandbox":"iabc","port":8000,"method":"GET","path":"/a\"b","status":200,"bytes_in":1,)"
      R"("bytes_out":2,"duration_us":1500,"key":"0123","peer":"::1","cut":true})"
      "\n");
}

TEST(AccessLine, IsOneBoundedLineWhateverThePathIs) {
  const std::string label(63, 'x');
  for (const char byte : {'\n', '"', '\x01', '\xff', 'a'}) {
    std::string line;
    render_access({.route = "signature",
                   .ns = label,
                   .sandbox = label,
                   .port = 65535,
                   .method = "OPTIONS",
                   .path = std::string(100'000, byte),
                   .status = 499,
                   .bytes_in = UINT64_MAX,
                   .bytes_out = UINT64_MAX,
                   .key = label,
                   .peer = label,
                   .is_cut = true},
                  line);

    EXPECT_LE(line.size(), kMostLineBytes);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_NO_THROW(model::parse_json(line));
  }
}

TEST_F(AccessLogTest, AppendsToItsFileAndToANewOneOnceThatWasRenamed) {
  std::ofstream(path()) << "before\n";
  std::optional<AccessLog> log;
  log.emplace(AccessLogOptions{.file = open_access_file(path()), .registry = &registry_});
  log->take("one\ntwo\n");
  while (count("lines") < 2) std::this_thread::yield();
  fs::rename(path(), path() + ".1");
  log->take("three\n");
  log.reset();

  EXPECT_EQ(read(path() + ".1"), "before\none\ntwo\n");
  EXPECT_EQ(read(path()), "three\n");
  EXPECT_EQ(count("lines"), 3U);
  EXPECT_EQ(count("dropped"), 0U);
}

TEST_F(AccessLogTest, GoesOnWithARenamedFileWhereItCannotMakeAnother) {
  std::optional<AccessLog> log;
  log.emplace(AccessLogOptions{.file = open_access_file(path()), .registry = &registry_});
  fs::rename(path(), folder_ / "old");
  fs::create_directory(path());
  log->take("one\n");
  log.reset();

  EXPECT_EQ(read(folder_ / "old"), "one\n");
}

TEST_F(AccessLogTest, CountsWhatAFullDiskDoesNotTake) {
  std::optional<AccessLog> log;
  log.emplace(AccessLogOptions{.file = open_access_file("/dev/full"), .registry = &registry_});
  log->take("one\ntwo\n");
  log.reset();

  EXPECT_EQ(count("lines"), 0U);
  EXPECT_EQ(count("dropped"), 2U);
}

TEST_F(AccessLogTest, NeitherWaitsForASlowReaderNorKeepsWithoutEnd) {
  linux::Pipe pipe = linux::make_pipe();
  const std::string line = std::string(1023, 'x') + '\n';
  std::string lot;
  for (int i = 0; i < 128; ++i) lot += line;
  std::optional<AccessLog> log;
  log.emplace(AccessLogOptions{.file = {.path = "-", .fd = std::move(pipe.write)},
                               .registry = &registry_,
                               .most_waiting_bytes = 256 << 10,
                               .end_patience = {}});
  for (int i = 0; i < 64; ++i) log->take(lot);
  EXPECT_GE(count("dropped"), 128U * 60);
  log.reset();

  EXPECT_EQ(count("lines") + count("dropped"), 64U * 128);
  // What the reader finds are whole lines.
  std::string found(count("lines") * line.size(), '\0');
  EXPECT_EQ(::read(pipe.read.get(), found.data(), found.size()), std::ssize(found));
  for (std::size_t at = 0; at < found.size(); at += line.size())
    EXPECT_EQ(found.compare(at, line.size(), line), 0);
}

TEST_F(AccessLogTest, AFileThatCannotBeOpenedIsAnError) {
  EXPECT_THROW(open_access_file(folder_ / "no" / "such"), Error);
}

TEST_F(AccessLogTest, LinesOfAThreadArriveAtItsEnd) {
  {
    AccessLog log({.file = open_access_file(path())});
    AccessLines lines(log);
    for (int i = 0; i < 1000; ++i) lines.add({.route = "api", .method = "GET", .status = 200});
  }
  const std::string text = read(path());
  EXPECT_EQ(std::ranges::count(text, '\n'), 1000);
}

}  // namespace
}  // namespace hearth::gateway
