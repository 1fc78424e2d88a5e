#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/ip_text.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/time_text.h"
#include "base/wire.h"

namespace hearth {
namespace {

using namespace std::chrono_literals;

TEST(TimeText, GoesBothWays) {
  const Time time(1767323045s + 120ms);
  EXPECT_EQ(format_rfc3339(time), "2026-01-02T03:04:05Z");
  EXPECT_EQ(format_rfc3339(time, 3), "2026-01-02T03:04:05.120Z");
  EXPECT_EQ(parse_rfc3339("2026-01-02T03:04:05.12Z"), time);
  EXPECT_EQ(parse_rfc3339("2026-01-02T05:04:05.12+02:00"), time);
  EXPECT_EQ(format_rfc3339(Time(-1ns), 9), "1969-12-31T23:59:59.999999999Z");
}

TEST(TimeText, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "2026-01-02", "2026-02-30T00:00:00Z", "2026-01-02T24:00:00Z", "2026-01-02T03:04:05",
        "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05Zx", "2026-01-02T03:04:05+24:00",
        "0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z"}) {
    EXPECT_FALSE(parse_rfc3339(text)) << text;
  }
}

TEST(TimeText, AgesAsKubectlShowsThem) {
  EXPECT_EQ(format_age(45s), "45s");
  EXPECT_EQ(format_age(185s), "3m5s");
  EXPECT_EQ(format_age(2h), "2h");
  EXPECT_EQ(format_age(123h), "5d3h");
  EXPECT_EQ(format_age(-5s), "0s");
}

TEST(TimeText, DurationsAsGoWritesThem) {
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("300ms"), 300ms);
  EXPECT_EQ(parse_duration("2h45m"), 165min);
  EXPECT_EQ(parse_duration("0s"), 0s);
  for (const char* text : {"", "5", "s", "1.2.3s", "-1s", "1x", "99999999999h"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(IpText, IsReadWhole) {
  using namespace std::string_view_literals;
  EXPECT_EQ(ntohl(parse_ipv4("10.9.8.7").value_or(in_addr{}).s_addr), 0x0a090807U);
  EXPECT_EQ(parse_ipv6("2001:db8::7").value_or(in6_addr{}).s6_addr[15], 7);
  for (const std::string_view text :
       {""sv, "10.9.8"sv, "10.9.8.7 "sv, "10.9.8.7\0"sv, "10.9.8.7\0x"sv, "::1\0x"sv, "::g"sv}) {
    EXPECT_FALSE(parse_ipv4(text)) << text;
    EXPECT_FALSE(parse_ipv6(text)) << text;
  }
  EXPECT_FALSE(parse_ipv4("::1"));
  EXPECT_FALSE(parse_ipv6("10.9.8.7"));
}

TEST(JsonText, IsAlwaysValid) {
  EXPECT_EQ(json_quote("a\"b\\c\n\x01"), R"("a\"b\\c\n\u0001")");
  EXPECT_EQ(json_quote("größe"), "\"größe\"");
  EXPECT_EQ(json_quote("\xff\xc0\xaf"), R"("\ufffd\ufffd\ufffd")");
  EXPECT_EQ(json_quote("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")");  // a surrogate
  EXPECT_EQ(to_utf8("gr\xC3\xB6\xC3"), "gr\xC3\xB6\xEF\xBF\xBD");
}

TEST(JsonText, KnowsUtf8WhereverItStands) {
  for (std::size_t before = 0; before < 20; ++before) {
    for (std::size_t after = 0; after < 20; ++after) {
      const std::string text = std::string(before, 'x') + "\xC3\xB6" + std::string(after, 'x');
      EXPECT_TRUE(is_utf8(text)) << text;
      EXPECT_FALSE(is_utf8(std::string(before, 'x') + '\xC3' + std::string(after, 'x'))) << text;
    }
  }
}

TEST(Log, QuotesWhatCouldBeMistaken) {
  const Time time(1767323045s);
  EXPECT_EQ(log::render(log::Format::text, log::Level::info, time, "made",
                        {{"id", "sb-1"}, {"why", "two words\n"}, {"n", 3}}),
            "2026-01-02T03:04:05.000Z info    made id=sb-1 why=\"two words\\n\" n=3");
  EXPECT_EQ(
      log::render(log::Format::json, log::Level::error, time, "made",
                  {{"id", "sb\"1"}, {"n", 3}, {"ok", true}}),
      R"({"time":"2026-01-02T03:04:05.000Z","level":"error","message":"made","id":"sb\"1","n":3,"ok":true})");
}

TEST(Log, NamesTheLevelsThereAre) {
  EXPECT_EQ(log::parse_level("warning"), log::Level::warning);
  EXPECT_EQ(log::parse_format("json"), log::Format::json);
  try {
    log::parse_level("loud");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    EXPECT_NE(std::string(error.what()).find("warning"), std::string::npos);
  }
}

TEST(Wire, ReadsWhatWasWritten) {
  wire::Writer writer;
  writer.u8(7).u32(0xdeadbeef).u64(1ull << 60).boolean(true).text("hi").texts({"a", "", "c"});
  const std::string bytes = std::move(writer).take();

  wire::Reader reader(bytes);
  EXPECT_EQ(reader.u8(), 7);
  EXPECT_EQ(reader.u32(), 0xdeadbeef);
  EXPECT_EQ(reader.u64(), 1ull << 60);
  EXPECT_TRUE(reader.boolean());
  EXPECT_EQ(reader.text(), "hi");
  EXPECT_EQ(reader.texts(), (std::vector<std::string>{"a", "", "c"}));
  EXPECT_NO_THROW(reader.end());
}

TEST(Wire, NeverReadsPastTheEnd) {
  EXPECT_THROW(wire::Reader("").u8(), Error);
  EXPECT_THROW(wire::Reader("abc").u32(), Error);
  EXPECT_THROW(wire::Reader(std::string_view("\xff\xff\xff\xff", 4)).text(), Error);
  EXPECT_THROW(wire::Reader(std::string_view("\xff\xff\xff\xff", 4)).texts(), Error);
  EXPECT_THROW(wire::Reader("\x02").boolean(), Error);
  EXPECT_THROW(wire::Reader("left over").end(), Error);
}

TEST(Base64, ReadsWhatItWrites) {
  for (const std::string text : {"", "a", "ab", "abc", "user:password", "\x00\xff\x80"}) {
    EXPECT_EQ(base64_decode(base64_encode(text)), text);
  }
  EXPECT_EQ(base64_encode("user:pass"), "dXNlcjpwYXNz");
  EXPECT_EQ(base64_encode("a"), "YQ==");
  EXPECT_EQ(base64_decode("YQ"), "a");
  EXPECT_EQ(base64_decode("-_-_"), base64_decode("+/+/"));
  EXPECT_FALSE(base64_decode("Y"));
  EXPECT_FALSE(base64_decode("Y Q="));
}

}  // namespace
}  // namespace hearth
