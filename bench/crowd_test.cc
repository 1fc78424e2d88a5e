#include "bench/crowd.h"

#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "bench/small_server.h"

namespace hearth::bench {
namespace {

TEST(FindAnswerTest, KnowsWhereAnAnswerEnds) {
  const std::string_view text = "HTTP/1.1 201 Created\r\ncontent-length: 4\r\n\r\nbodyHTTP/1.1";
  const auto answer = find_answer(text);
  ASSERT_TRUE(answer);
  EXPECT_EQ(text.substr(answer->body, answer->end - answer->body), "body");
  for (std::size_t size = 0; size < answer->end; ++size)
    EXPECT_FALSE(find_answer(text.substr(0, size))) << size;

  EXPECT_EQ(find_answer("HTTP/1.1 204 No Content\r\n\r\n")->end, 27U);
}

TEST(FindAnswerTest, ReadsChunksToTheLast) {
  const std::string_view text =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n";
  EXPECT_EQ(find_answer(text)->end, text.size());
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(find_answer(text.substr(0, size))) << size;
}

TEST(FindAnswerTest, RefusesWhatIsNoSuccess) {
  for (const char* text :
       {"HTTP/1.1 429 Too Many\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nwithout an end"})
    EXPECT_THROW(find_answer(text), Error) << text;
}

// A server on a thread of its own: it never ends, so that it lives as long as the test's program.
std::uint16_t serve(unsigned status, std::size_t bytes) {
  auto* server = new SmallServer(SmallServer::echo(status, bytes));
  const std::uint16_t port = server->port();
  std::thread([server] { server->serve(); }).detach();
  return port;
}

constexpr const char* kRequest = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";

TEST(CrowdTest, AllTalkAndEachIsTimed) {
  Crowd crowd(serve(201, 300), 20);
  unsigned answers = 0;
  const std::vector<double> times =
      crowd.talk(10, [&](unsigned, std::string_view body) -> std::optional<Exchange> {
        if (body.empty()) return Exchange{.request = kRequest};
        EXPECT_EQ(body, std::string(300, 'x'));
        ++answers;
        return {};
      });
  EXPECT_EQ(answers, 10U);
  EXPECT_EQ(times.size(), 10U);
  for (const double time : times) EXPECT_GT(time, 0);
}

TEST(CrowdTest, GoesOnAskingForAsLongAsItIsTold) {
  Crowd crowd(serve(200, 10), 4);
  EXPECT_GE(crowd.load(kRequest, std::chrono::milliseconds(10)).size(), 4U);
}

TEST(CrowdTest, SaysWhatItWasAnswered) {
  Crowd crowd(serve(500, 1), 1);
  EXPECT_THROW(crowd.load(kRequest, std::chrono::milliseconds(1)), Error);
  // What is waited for has to come.
  Crowd other(serve(200, 1), 1);
  EXPECT_THROW(other.talk(1,
                          [](unsigned, std::string_view) {
                            return std::optional(Exchange{.request = kRequest, .stop_at = "never"});
                          }),
               Error);
}

}  // namespace
}  // namespace hearth::bench
