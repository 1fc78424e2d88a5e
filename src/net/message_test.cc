#include <gtest/gtest.h>

#include "net/message_internal.h"
#include "net/words.h"

namespace hearth::net {
namespace {

unsigned request_status(std::string_view bytes, Head* kept = nullptr) {
  HeadScanner scanner;
  const auto found = scanner.scan(bytes);
  if (found == HeadScanner::Found::bad) return 400;
  if (found == HeadScanner::Found::more) return 0;
  Head head;
  const auto problem = parse_request_head(bytes.substr(0, scanner.size()), Limits(), head);
  if (kept != nullptr) *kept = head;
  return problem ? problem->status : 200;
}

std::string with_fields(std::string_view fields) {
  return fmt::format("POST / HTTP/1.1\r\nHost: h\r\n{}\r\n", fields);
}

TEST(HeadScanner, FindsTheEndWhereverTheBytesAreSplit) {
  constexpr std::string_view kHead = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  const std::string bytes = std::string(kHead) + "rest";

  for (std::size_t first = 0; first <= bytes.size(); ++first) {
    HeadScanner scanner;
    const auto early = scanner.scan(std::string_view(bytes).substr(0, first));
    EXPECT_EQ(early == HeadScanner::Found::complete, first >= kHead.size()) << first;
    if (early == HeadScanner::Found::more) {
      EXPECT_EQ(scanner.scan(bytes), HeadScanner::Found::complete) << first;
    }
    EXPECT_EQ(scanner.size(), kHead.size());
  }
}

TEST(HeadScanner, RefusesAtOnceWhatIsNoHttp) {
  for (const std::string_view bad :
       {"GET / HTTP/1.1\nHost: h\n\n", "GET / HTTP/1.1\rHost", "\x16\x03\x01", "GET /\x01",
        "GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", "GET / HTTP/1.1\r\nA: b\r\n\tfolded"}) {
    EXPECT_EQ(request_status(bad), 400U) << bad;
  }
  EXPECT_EQ(request_status(std::string_view("GET /\0", 6)), 400U);
}

TEST(Head, WhatTwoReadersCouldReadDifferentlyIsRefused) {
  EXPECT_EQ(request_status(with_fields("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")),
            400U);
  EXPECT_EQ(request_status(with_fields("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n")),
            400U);
  EXPECT_EQ(request_status(with_fields("Content-Length: 5\r\nContent-Length: 6\r\n")), 400U);
  EXPECT_EQ(request_status(with_fields("Content-Length: 5\r\nContent-Length: 5\r\n")), 400U);
  EXPECT_EQ(request_status(with_fields("Content-Length: 5, 5\r\n")), 400U);
  EXPECT_EQ(request_status(with_fields("Content-Length: +5\r\n")), 400U);
  EXPECT_EQ(request_status(with_fields("Content-Length: -1\r\n")), 400U);
  EXPECT_EQ(request_status(with_fields("Content-Length: 0x5\r\n")), 400U);
  EXPECT_EQ(request_status(with_fields("Content-Length:\r\n")), 400U);
  EXPECT_EQ(request_status(with_fields("Content-Length: 99999999999999999999\r\n")), 400U);
  EXPECT_EQ(request_status(with_fields("Content-Length : 5\r\n")), 400U);
  EXPECT_EQ(request_status(with_fields("Transfer-Encoding: chunked\r\n"
                                       "Transfer-Encoding: chunked\r\n")),
            400U);
  EXPECT_EQ(request_status("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400U);
}

TEST(Head, UnknownTransferEncodingsAreNotImplemented) {
  for (const std::string_view coding :
       {"gzip", "gzip, chunked", "chunked, gzip", "chunked, chunked", "xchunked", "identity"}) {
    EXPECT_EQ(request_status(with_fields(fmt::format("Transfer-Encoding: {}\r\n", coding))), 501U)
        << coding;
  }
}

TEST(Head, MalformedOnesAreBadRequests) {
  EXPECT_EQ(request_status("GET / HTTP/1.1\r\n\r\n"), 400U) << "no Host";
  EXPECT_EQ(request_status("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400U);
  EXPECT_EQ(request_status("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), 400U);
  EXPECT_EQ(request_status("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400U);
  EXPECT_EQ(request_status("GET  / HTTP/1.1\r\nHost: h\r\n\r\n"), 400U);
  EXPECT_EQ(request_status("GET / HTTP/1.1 \r\nHost: h\r\n\r\n"), 400U);
  EXPECT_EQ(request_status("GET /\r\nHost: h\r\n\r\n"), 400U) << "HTTP/0.9";
  EXPECT_EQ(request_status("GET / HTTP/1.1\r\nHost: h\r\n: empty\r\n\r\n"), 400U);
  EXPECT_EQ(request_status("GET / HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n"), 400U);
  EXPECT_EQ(request_status("G@T / HTTP/1.1\r\nHost: h\r\n\r\n"), 400U);
  EXPECT_EQ(request_status("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), 505U);
  EXPECT_EQ(request_status("GET / HTTP/1.0\r\n\r\n"), 200U) << "HTTP/1.0 needs no Host";
}

TEST(Head, SaysHowTheBodyIsFramed) {
  Head head;
  EXPECT_EQ(request_status(with_fields("Content-Length: 5\r\n"), &head), 200U);
  EXPECT_EQ(head.framing.kind, BodyKind::length);
  EXPECT_EQ(head.framing.length, 5U);
  EXPECT_EQ(request_status(with_fields("Transfer-Encoding: Chunked\r\n"), &head), 200U);
  EXPECT_EQ(head.framing.kind, BodyKind::chunked);
  EXPECT_EQ(request_status(with_fields(""), &head), 200U);
  EXPECT_EQ(head.framing.kind, BodyKind::none);
}

// All pieces put together, with the input arriving in steps of `step` bytes; "bad" where refused.
std::string decode(Framing framing, std::string_view bytes, std::size_t step, bool& done) {
  BodyDecoder decoder(framing);
  std::string body;
  std::string buffer;
  while (!bytes.empty() && !decoder.is_done()) {
    buffer += bytes.substr(0, step);
    bytes.remove_prefix(std::min(step, bytes.size()));
    while (!decoder.is_done()) {
      const auto next = decoder.take(buffer);
      if (next.bad) return "bad";
      body += next.body;
      if (next.used == 0) break;
      buffer.erase(0, next.used);
    }
  }
  done = decoder.is_done();
  return body;
}

TEST(ChunkedBody, IsReadWhereverItIsSplit) {
  constexpr std::string_view kBody =
      "5\r\nhello\r\n1;ext=\"x\"\r\n,\r\n00A\r\n0123456789\r\n0\r\nT: x\r\n\r\n";

  for (std::size_t step = 1; step <= kBody.size(); ++step) {
    bool done = false;
    EXPECT_EQ(decode({BodyKind::chunked, 0}, kBody, step, done), "hello,0123456789") << step;
    EXPECT_TRUE(done) << step;
  }
}

TEST(ChunkedBody, MalformedOnesAreRefused) {
  for (const std::string_view bad :
       {"\r\n", "x\r\n", "+5\r\nhello\r\n", "0x5\r\nhello\r\n", "5 \r\nhello\r\n", "5\nhello\r\n",
        "5\rhello", "5\r\nhello0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "-1\r\n",
        "1234567890abcdef\r\n", "0\r\nA: \x01\r\n\r\n", ";\r\n"}) {
    bool done = false;
    EXPECT_EQ(decode({BodyKind::chunked, 0}, bad, 1, done), "bad") << bad;
  }
  bool done = false;
  EXPECT_EQ(decode({BodyKind::chunked, 0}, "5;" + std::string(5000, 'x'), 100, done), "bad");
  std::string trailers = "0\r\n";
  for (int i = 0; i < 1000; ++i) trailers += "A: 0123456789\r\n";
  EXPECT_EQ(decode({BodyKind::chunked, 0}, trailers, 100, done), "bad");
}

TEST(CountedBody, EndsWhereItShould) {
  bool done = false;
  EXPECT_EQ(decode({BodyKind::length, 3}, "abcdef", 2, done), "abc");
  EXPECT_TRUE(done);
  EXPECT_EQ(decode({BodyKind::length, 9}, "abcdef", 2, done), "abcdef");
  EXPECT_FALSE(done);
}

TEST(RenderedHead, CannotBeSplitByWhatAHandlerPutsIn) {
  for (const std::string& bad :
       {std::string("a\r\nX: y"), std::string("a\n"), std::string("a\0", 2)}) {
    Response response;
    response.headers.add("Location", bad);
    EXPECT_THROW(render_head(response, {}), Error);
  }
  Response name;
  name.headers.add("X: y\r\nZ", "1");
  EXPECT_THROW(render_head(name, {}), Error);
  Request target;
  target.target = "/ HTTP/1.1\r\nX: y";
  EXPECT_THROW(render_head(target, {}), Error);
}

TEST(RenderedHead, FramingIsNotTheHandlersBusiness) {
  Response response;
  response.headers.add("Transfer-Encoding", "chunked");
  response.headers.add("X", "y");

  const std::string head = render_head(response, {{"Content-Length", "0"}});

  EXPECT_EQ(head.find("chunked"), std::string::npos);
  EXPECT_NE(head.find("X: y\r\nContent-Length: 0\r\n\r\n"), std::string::npos);
}

}  // namespace
}  // namespace hearth::net
