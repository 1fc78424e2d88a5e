#include "http/head_view.h"

#include <gtest/gtest.h>

namespace hearth::http {
namespace {

TEST(HeadView, SeesARequest) {
  HeadView head;
  ASSERT_EQ(parse_request_head("POST /a?b HTTP/1.1\r\nHost: x\r\nA:  b \r\na:c\r\n"
                               "Connection: close, Upgrade\r\nContent-Length: 5\r\n\r\n",
                               100, head),
            std::nullopt);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/a?b");
  EXPECT_EQ(head.value("A"), "b");
  EXPECT_EQ(head.find("a")->line, "A:  b \r\n");
  EXPECT_TRUE(head.has_token("connection", "upgrade"));
  EXPECT_FALSE(head.wants_keep_alive());
  EXPECT_EQ(head.framing.kind, BodyKind::length);
  EXPECT_EQ(head.framing.length, 5U);
}

TEST(HeadView, AgreesWithTheOtherParser) {
  const auto check = [](std::string_view text, bool is_request) {
    HeadView view;
    Head head;
    const auto one = is_request ? parse_request_head(text, 16 << 10, view)
                                : parse_response_head(text, false, view);
    const auto other = is_request ? parse_request_head(text, Limits{}, head)
                                  : parse_response_head(text, Limits{}, false, head);
    EXPECT_EQ(one.has_value(), other.has_value()) << text;
    if (one || other) return;
    EXPECT_EQ(view.framing.kind, head.framing.kind) << text;
    EXPECT_EQ(view.framing.length, head.framing.length) << text;
    EXPECT_EQ(view.minor, head.minor) << text;
    EXPECT_EQ(view.wants_keep_alive(), head.wants_keep_alive()) << text;
  };
  for (const char* line : {"GET / HTTP/1.1", "GET / HTTP/1.0", "GET / HTTP/1.2", "GET / HTTP/2.0",
                           "GET  / HTTP/1.1", "GET /", "G@T / HTTP/1.1", " GET / HTTP/1.1"}) {
    for (const char* fields :
         {"Host: x\r\n", "", "Host: x\r\nHost: y\r\n", "Host: a b\r\n",
          "Host: x\r\nContent-Length: 5\r\n",
          "Host: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n",
          "Host: x\r\nContent-Length: 0x5\r\n", "Host: x\r\nContent-Length: \r\n",
          "Host: x\r\nContent-Length: 99999999999999999999\r\n",
          "Host: x\r\nTransfer-Encoding: chunked\r\n",
          "Host: x\r\nTransfer-Encoding: gzip, chunked\r\n",
          "Host: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", "Host : x\r\n",
          "Host: x\r\n: y\r\n", "Host: x\r\nab\r\n", "Host: x\r\nConnection: close\r\n"}) {
      check(std::string(line) + "\r\n" + fields + "\r\n", true);
    }
  }
  for (const char* line : {"HTTP/1.1 200 OK", "HTTP/1.1 200 ", "HTTP/1.0 204 x", "HTTP/1.1 101 x",
                           "HTTP/1.1 20 x", "HTTP/1.1  200 x", "HTTP/2.0 200 x", "HTP/1.1 200 x"}) {
    for (const char* fields : {"", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n",
                               "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"}) {
      check(std::string(line) + "\r\n" + fields + "\r\n", false);
    }
  }
}

TEST(HeadView, TakesOnlySoManyFields) {
  std::string text = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (std::size_t i = 1; i < HeadView::kMostFields; ++i) text += "A: b\r\n";
  HeadView head;
  EXPECT_EQ(parse_request_head(text + "\r\n", 100, head), std::nullopt);
  EXPECT_EQ(parse_request_head(text + "A: b\r\n\r\n", 100, head)->status, 431U);
  EXPECT_EQ(parse_request_head("GET /" + std::string(100, 'x') + " HTTP/1.1\r\nHost: x\r\n\r\n",
                               100, head)
                ->status,
            414U);
}

}  // namespace
}  // namespace hearth::http
