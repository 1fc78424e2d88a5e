#include "envd/file_rules.h"

#include <gtest/gtest.h>

#include "envd/metrics.h"

namespace hearth::envd {
namespace {

using namespace std::chrono_literals;
using Kind = RangeAnswer::Kind;

TEST(Encodings, AreChosenByQuality) {
  const auto choose = [](const char* accepted) {
    return choose_encoding({{"Accept-Encoding", accepted}});
  };
  EXPECT_EQ(choose_encoding({}), Encoding::identity);
  EXPECT_EQ(choose(""), Encoding::identity);
  EXPECT_EQ(choose("gzip"), Encoding::gzip);
  EXPECT_EQ(choose("gzip, deflate, br"), Encoding::gzip);
  EXPECT_EQ(choose("*"), Encoding::gzip);
  EXPECT_EQ(choose("gzip;q=0"), Encoding::identity);
  EXPECT_EQ(choose("*;q=0.5, gzip;q=0"), Encoding::identity);
  EXPECT_EQ(choose("deflate, br"), Encoding::identity);
  EXPECT_EQ(choose("gzip;q=0.5, identity;q=0.9"), Encoding::identity);
  EXPECT_EQ(choose("gzip;q=0.9, identity;q=0.5"), Encoding::gzip);
  EXPECT_EQ(choose("identity, gzip"), Encoding::identity);
  EXPECT_EQ(choose("gzip, identity"), Encoding::gzip);
  EXPECT_EQ(choose("identity;q=0"), std::nullopt);
  EXPECT_EQ(choose("*;q=0"), std::nullopt);
  EXPECT_EQ(choose("identity;q=0, gzip"), Encoding::gzip);
  EXPECT_TRUE(takes_identity({}));
  EXPECT_TRUE(takes_identity({{"Accept-Encoding", "gzip"}}));
  EXPECT_FALSE(takes_identity({{"Accept-Encoding", "gzip, identity;q=0"}}));
  EXPECT_FALSE(takes_identity({{"Accept-Encoding", "gzip, *;q=0"}}));
}

TEST(HttpDates, GoBothWays) {
  const Time time(1767323045s);
  EXPECT_EQ(format_http_date(time), "Fri, 02 Jan 2026 03:04:05 GMT");
  EXPECT_EQ(parse_http_date("Fri, 02 Jan 2026 03:04:05 GMT"), time);
  for (const char* text : {"", "2026-01-02", "Fri, 02 Foo 2026 03:04:05 GMT",
                           "Fri, 99 Jan 2026 03:04:05 GMT", "Fri, 02 Jan 2026 03:04:05 CET"}) {
    EXPECT_FALSE(parse_http_date(text)) << text;
  }
}

TEST(Ranges, AreCutToTheFile) {
  const auto answer = [](const char* range) {
    return evaluate_conditions({{"Range", range}}, 10, Time(1767323045s));
  };
  const auto expect_part = [&](const char* range, std::uint64_t begin, std::uint64_t size) {
    const RangeAnswer got = answer(range);
    EXPECT_EQ(got.kind, Kind::part) << range;
    EXPECT_EQ(got.range.begin, begin) << range;
    EXPECT_EQ(got.range.size, size) << range;
  };
  expect_part("bytes=0-0", 0, 1);
  expect_part("bytes=2-4", 2, 3);
  expect_part("bytes=5-", 5, 5);
  expect_part("bytes=5-100", 5, 5);
  expect_part("bytes=-3", 7, 3);
  expect_part("bytes=-100", 0, 10);
  for (const char* range : {"bytes=10-", "bytes=4-2", "bytes=-0", "bytes=x-", "bytes=-", "bytes=5"})
    EXPECT_EQ(answer(range).kind, Kind::unsatisfiable) << range;
  for (const char* range : {"lines=1-2", "bytes=0-1,3-4", ""})
    EXPECT_EQ(answer(range).kind, Kind::whole) << range;
}

TEST(Conditions, AreAboutTheTime) {
  const Time modified(1767323045s + 500ms);
  const std::string same = format_http_date(modified);
  const std::string before = format_http_date(modified - 1h);
  const auto kind = [&](const http::Headers& headers) {
    return evaluate_conditions(headers, 10, modified).kind;
  };
  EXPECT_EQ(kind({{"If-Modified-Since", same}}), Kind::not_modified);
  EXPECT_EQ(kind({{"If-Modified-Since", before}}), Kind::whole);
  EXPECT_EQ(kind({{"If-Unmodified-Since", before}}), Kind::precondition_failed);
  EXPECT_EQ(kind({{"If-Unmodified-Since", same}}), Kind::whole);
  EXPECT_EQ(kind({{"If-Match", "\"x\""}}), Kind::precondition_failed);
  EXPECT_EQ(kind({{"If-None-Match", "*"}}), Kind::not_modified);
  EXPECT_EQ(kind({{"If-None-Match", "\"x\""}, {"If-Modified-Since", same}}), Kind::whole);
  EXPECT_EQ(kind({{"Range", "bytes=0-1"}, {"If-Range", same}}), Kind::part);
  EXPECT_EQ(kind({{"Range", "bytes=0-1"}, {"If-Range", before}}), Kind::whole);
}

TEST(ContentTypes, ComeFromTheNameOrTheBytes) {
  EXPECT_EQ(content_type_of("a.JSON", "{}"), "application/json");
  EXPECT_EQ(content_type_of("a", "plain text\n"), "text/plain; charset=utf-8");
  EXPECT_EQ(content_type_of("a", std::string_view("\0\1", 2)), "application/octet-stream");
  EXPECT_EQ(content_type_of("a", "\x89PNG\r\n\x1a\n..."), "image/png");
  EXPECT_EQ(content_type_of("a.py", "import os"), "text/plain; charset=utf-8");
}

TEST(ContentDispositions, NameTheFile) {
  EXPECT_EQ(content_disposition("a.txt"), "inline; filename=a.txt");
  EXPECT_EQ(content_disposition("a \"b\".txt"), "inline; filename=\"a \\\"b\\\".txt\"");
  EXPECT_EQ(content_disposition("ü\r\n"), "inline; filename*=utf-8''%C3%BC%0D%0A");
}

TEST(Metrics, AreReadFromTheKernelsTexts) {
  const CpuTimes times =
      parse_cpu_times("cpu  10 1 5 80 4 0 0 0 3 3\ncpu0 5 0 0 0\ncpu1 5 0 0 0\nintr 1\n");
  EXPECT_EQ(times.count, 2U);
  EXPECT_EQ(times.total, 100U);
  EXPECT_EQ(times.idle, 84U);
  EXPECT_EQ(parse_memory_line("MemTotal:  100 kB\nCached: 3 kB\n", "Cached"), 3072U);
  EXPECT_EQ(parse_memory_line("MemTotal: 1 kB", "Cached"), 0U);
}

}  // namespace
}  // namespace hearth::envd
