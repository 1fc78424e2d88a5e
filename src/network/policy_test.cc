#include "network/policy.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::network {
namespace {

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Cidr, GoesBothWays) {
  EXPECT_EQ(parse_cidr("10.0.0.0/8"), (Cidr{.address = 0x0a000000, .prefix = 8}));
  EXPECT_EQ(parse_cidr("1.2.3.4"), (Cidr{.address = 0x01020304, .prefix = 32}));
  EXPECT_EQ(parse_cidr("0.0.0.0/0"), (Cidr{.address = 0, .prefix = 0}));
  for (const char* text : {"10.0.0.0/8", "1.2.3.4", "0.0.0.0/0", "255.255.255.255", "1.2.3.0/25"}) {
    EXPECT_EQ(to_string(parse_cidr(text)), text);
  }
}

TEST(Cidr, RefusesWhatIsNone) {
  for (const char* text : {"",
                           "10",
                           "10.0.0",
                           "10.0.0.0.0",
                           "10.0.0.256",
                           "10.0.0.-1",
                           "+10.0.0.0",
                           "10..0.0",
                           "a.b.c.d",
                           "10.0.0.0/",
                           "10.0.0.0/33",
                           "10.0.0.0/-1",
                           "10.0.0.0/8/8",
                           " 10.0.0.0",
                           "10.0.0.0 ",
                           "010.0.0.0",
                           "10.0.0.0/08",
                           "0x0a.0.0.0",
                           "fd00::1",
                           "10.0.0.0/8x",
                           "99999999999.0.0.0"}) {
    message_of([&] { parse_cidr(text); });
  }
  EXPECT_NE(message_of([] { parse_cidr("10.0.0.1/8"); }).find("10.0.0.0/8"), std::string::npos);
}

TEST(Cidr, KnowsWhatItHolds) {
  const Cidr ten = parse_cidr("10.0.0.0/8");
  EXPECT_TRUE(ten.contains(0x0affffff));
  EXPECT_FALSE(ten.contains(0x0b000000));
  EXPECT_TRUE(parse_cidr("0.0.0.0/0").contains(0xffffffff));
  EXPECT_TRUE(ten.overlaps(parse_cidr("10.9.0.0/16")));
  EXPECT_TRUE(parse_cidr("10.9.0.0/16").overlaps(ten));
  EXPECT_TRUE(ten.overlaps(parse_cidr("0.0.0.0/0")));
  EXPECT_FALSE(ten.overlaps(parse_cidr("11.0.0.0/8")));
}

TEST(Rule, GoesBothWays) {
  EXPECT_EQ(parse_rule("1.1.1.1:443/tcp"), (Rule{.to = parse_cidr("1.1.1.1"),
                                                 .protocol = Protocol::tcp,
                                                 .first_port = 443,
                                                 .last_port = 443}));
  EXPECT_EQ(parse_rule("10.0.0.0/8:8000-8999"),
            (Rule{.to = parse_cidr("10.0.0.0/8"), .first_port = 8000, .last_port = 8999}));
  EXPECT_EQ(parse_rule("0.0.0.0/0/udp"),
            (Rule{.to = parse_cidr("0.0.0.0/0"), .protocol = Protocol::udp}));
  for (const char* text : {"1.1.1.1:443/tcp", "10.0.0.0/8:8000-8999", "0.0.0.0/0/udp", "1.2.3.4",
                           "1.2.3.4/udp", "1.2.3.4:1-65535"}) {
    EXPECT_EQ(to_string(parse_rule(text)), text);
  }
}

TEST(Rule, RefusesWhatIsNone) {
  for (const char* text :
       {"", ":80", "/tcp", "1.1.1.1:", "1.1.1.1:0", "1.1.1.1:65536", "1.1.1.1:90-80", "1.1.1.1:80-",
        "1.1.1.1:-80", "1.1.1.1:80/sctp", "1.1.1.1/tcp:80", "1.1.1.1:80:81", "example.com:80",
        "1.1.1.1:0-80", "1.1.1.1:+80", "1.1.1.1/TCP", "1.1.1.1:80-90-99"}) {
    message_of([&] { parse_rule(text); });
  }
}

TEST(Mode, GoesBothWays) {
  for (const Mode mode : {Mode::none, Mode::world, Mode::listed}) {
    EXPECT_EQ(parse_mode(to_string(mode)), mode);
  }
  message_of([] { parse_mode("open"); });
}

Policy rich_policy() {
  return {.mode = Mode::listed,
          .dns = false,
          .open = {parse_rule("10.0.0.1:80/tcp")},
          .allow = {parse_rule("1.1.1.1"), parse_rule("2.0.0.0/8:1-9/udp")},
          .deny = {parse_rule("0.0.0.0/0:65535")}};
}

std::string encode(const Policy& policy) {
  wire::Writer out;
  put(out, policy);
  return std::move(out).take();
}

TEST(PolicyWire, ReadsBackWhatItWrote) {
  for (const Policy& policy : {Policy{}, Policy{.mode = Mode::world}, rich_policy()}) {
    EXPECT_EQ(wire::parse_whole(encode(policy), read_policy), policy);
  }
}

TEST(PolicyWire, RefusesPartsOfIt) {
  const std::string whole = encode(rich_policy());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    message_of([&] { wire::parse_whole(whole.substr(0, size), read_policy); });
  }
  message_of([&] { wire::parse_whole(whole + "x", read_policy); });
}

TEST(PolicyWire, RefusesWhatNobodyWouldHaveWritten) {
  const auto refused = [](const Policy& policy) {
    message_of([&] { wire::parse_whole(encode(policy), read_policy); });
    message_of([&] { check(policy); });
  };
  refused({.mode = static_cast<Mode>(3)});
  refused({.allow = {{.to = {.address = 1, .prefix = 33}}}});
  refused({.allow = {{.to = {.address = 1, .prefix = 8}}}});
  refused({.deny = {{.protocol = static_cast<Protocol>(1)}}});
  refused({.open = {{.first_port = 9, .last_port = 8}}});
  refused({.open = {{.first_port = 0, .last_port = 8}}});
  refused({.deny = std::vector<Rule>(kMostRules + 1)});
  refused({.allow = std::vector<Rule>(kMostRules), .deny = std::vector<Rule>(1)});
  EXPECT_NO_THROW(check({.allow = std::vector<Rule>(kMostRules)}));

  // A count that no message could hold is refused before anything is allocated.
  wire::Writer out;
  out.u8(1).boolean(true).u32(0xffffffff);
  const std::string bytes = std::move(out).take();
  message_of([&] { wire::parse_whole(bytes, read_policy); });
}

}  // namespace
}  // namespace hearth::network
