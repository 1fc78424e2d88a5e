#include "serve/file_answer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include <gtest/gtest.h>

#include "base/error.h"
#include "serve/testing.h"

namespace hearth::serve {
namespace {

using namespace std::chrono_literals;

const FileFacts kFile{.size = 100, .modified = Time(784111777s + 5ms), .etag = "\"a-b\""};

FilePart ask(http::Headers headers, const FileFacts& file = kFile,
             const std::string& method = "GET") {
  http::Request request;
  request.method = method;
  request.headers = std::move(headers);
  return choose_part(request, file);
}

void expect_part(const FilePart& part, unsigned status, std::uint64_t offset, std::uint64_t size) {
  EXPECT_EQ(part.status, status);
  EXPECT_EQ(part.offset, offset);
  EXPECT_EQ(part.size, size);
}

TEST(ChoosePart, GivesAllByDefault) {
  expect_part(ask({}), 200, 0, 100);
  expect_part(ask({}, kFile, "HEAD"), 200, 0, 100);
}

TEST(ChoosePart, GivesOneRange) {
  expect_part(ask({{"Range", "bytes=0-0"}}), 206, 0, 1);
  expect_part(ask({{"Range", "bytes=10-19"}}), 206, 10, 10);
  expect_part(ask({{"Range", "BYTES=90-"}}), 206, 90, 10);
  expect_part(ask({{"Range", "bytes=90-18446744073709551615"}}), 206, 90, 10);
  expect_part(ask({{"Range", "bytes=-7"}}), 206, 93, 7);
  expect_part(ask({{"Range", "bytes=-700"}}), 206, 0, 100);
}

TEST(ChoosePart, RefusesARangeThatIsNotThere) {
  for (const char* range : {"bytes=100-", "bytes=100-200", "bytes=-0"})
    EXPECT_EQ(ask({{"Range", range}}).status, 416U) << range;
}

TEST(ChoosePart, GivesAllForWhatIsNoSingleRange) {
  for (const char* range :
       {"bytes=0-1,5-6", "bytes=", "bytes=-", "bytes=5-1", "lines=1-2", "bytes=a-b", "bytes", "",
        "bytes=1-99999999999999999999", "bytes=+1-2", "bytes=--1", "bytes=1-2-3"}) {
    expect_part(ask({{"Range", range}}), 200, 0, 100);
  }
}

TEST(ChoosePart, IgnoresRangesOfEmptyFilesAndOfOtherMethods) {
  const FileFacts empty{.size = 0, .modified = Time(), .etag = "\"e\""};
  expect_part(ask({{"Range", "bytes=0-"}}, empty), 200, 0, 0);
  expect_part(ask({{"Range", "bytes=0-1"}}, kFile, "HEAD"), 200, 0, 100);
}

TEST(ChoosePart, SaysThatNothingIsNew) {
  EXPECT_EQ(ask({{"If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"}}).status, 304U);
  EXPECT_EQ(ask({{"If-Modified-Since", "Sun, 06 Nov 1994 08:49:38 GMT"}}).status, 304U);
  EXPECT_EQ(ask({{"If-Modified-Since", "Sun, 06 Nov 1994 08:49:36 GMT"}}).status, 200U);
  EXPECT_EQ(ask({{"If-Modified-Since", "yesterday"}}).status, 200U);
  for (const char* tags : {"\"a-b\"", "W/\"a-b\"", "\"x\", \"a-b\" ,\"y\"", "*"})
    EXPECT_EQ(ask({{"If-None-Match", tags}}).status, 304U) << tags;
}

TEST(ChoosePart, BelievesTagsMoreThanDates) {
  const std::string later = "Sun, 06 Nov 1994 08:49:38 GMT";
  EXPECT_EQ(ask({{"If-None-Match", "\"x\""}, {"If-Modified-Since", later}}).status, 200U);
}

TEST(ChoosePart, GivesAllWhereTheRangeIsOfAnotherFile) {
  const http::Field range{"Range", "bytes=1-2"};
  EXPECT_EQ(ask({range, {"If-Range", "\"a-b\""}}).status, 206U);
  EXPECT_EQ(ask({range, {"If-Range", "Sun, 06 Nov 1994 08:49:37 GMT"}}).status, 206U);
  EXPECT_EQ(ask({range, {"If-Range", "\"x\""}}).status, 200U);
  EXPECT_EQ(ask({range, {"If-Range", "W/\"a-b\""}}).status, 200U);  // weak tags promise too little
  EXPECT_EQ(ask({range, {"If-Range", "Sun, 06 Nov 1994 08:49:38 GMT"}}).status, 200U);
}

class AnswerWithFile : public testing::Test {
 protected:
  AnswerWithFile() : file_(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {
    linux::write_all(file_.get(), "0123456789");
    const timespec times[2] = {{.tv_sec = 784111777}, {.tv_sec = 784111777, .tv_nsec = 5}};
    EXPECT_EQ(::futimens(file_.get(), times), 0);
    Listening listening = listen_on_loopback();
    std::vector<Entrance> entrances;
    entrances.push_back({.listen = std::move(listening.socket), .handler = [this](Exchange& e) {
                           answer_with_file(e, file_.get(), {{"Content-Type", "text/x"}});
                         }});
    server_ = std::make_unique<Server>(std::move(entrances));
    client_.emplace(listening.port);
  }

  http::Response get(http::Headers headers) { return client_->ask({.headers = headers}); }

  linux::Fd file_;
  std::unique_ptr<Server> server_;
  std::optional<TestClient> client_;
};

TEST_F(AnswerWithFile, SendsAllAndSaysWhatItIs) {
  const auto response = get({});
  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(response.body, "0123456789");
  EXPECT_EQ(response.headers.value("Content-Type"), "text/x");
  EXPECT_EQ(response.headers.value("Content-Length"), "10");
  EXPECT_EQ(response.headers.value("Accept-Ranges"), "bytes");
  EXPECT_EQ(response.headers.value("Last-Modified"), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(response.headers.find("Content-Range"), nullptr);
}

TEST_F(AnswerWithFile, SendsAPart) {
  const auto response = get({{"Range", "bytes=3-5"}});
  EXPECT_EQ(response.status, 206U);
  EXPECT_EQ(response.body, "345");
  EXPECT_EQ(response.headers.value("Content-Range"), "bytes 3-5/10");
}

TEST_F(AnswerWithFile, SaysHowLongAFileIsThatLacksTheRange) {
  const auto response = get({{"Range", "bytes=10-"}});
  EXPECT_EQ(response.status, 416U);
  EXPECT_EQ(response.headers.value("Content-Range"), "bytes */10");
  EXPECT_EQ(response.body, "");
}

TEST_F(AnswerWithFile, KnowsItsOwnTag) {
  const std::string etag(get({}).headers.value("ETag"));
  client_->send("GET / HTTP/1.1\r\nHost: x\r\nIf-None-Match: " + etag + "\r\n\r\n");
  EXPECT_EQ(client_->receive(/*has_body=*/false).status, 304U);
  linux::write_all(file_.get(), "more");
  EXPECT_EQ(get({{"If-None-Match", etag}}).body, "0123456789more");
}

TEST_F(AnswerWithFile, TellsTheSizeWithoutTheBytes) {
  const auto response = client_->ask({.method = "HEAD"});
  EXPECT_EQ(response.headers.value("Content-Length"), "10");
  EXPECT_EQ(get({}).body, "0123456789");  // the connection goes on
}

TEST_F(AnswerWithFile, SendsAHoleOfGigabytesWithoutHoldingIt) {
  constexpr std::uint64_t kSize = std::uint64_t{8} << 30;
  ASSERT_EQ(::ftruncate(file_.get(), static_cast<off_t>(kSize)), 0);
  const auto response = get({{"Range", fmt::format("bytes={}-", kSize - 3)}});
  EXPECT_EQ(response.status, 206U);
  EXPECT_EQ(response.body, std::string(3, '\0'));
}

TEST_F(AnswerWithFile, RefusesWhatIsNoFile) {
  file_ = linux::open_file("/", O_RDONLY | O_DIRECTORY);
  EXPECT_EQ(get({}).status, 400U);
}

}  // namespace
}  // namespace hearth::serve
