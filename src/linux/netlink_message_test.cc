#include "linux/netlink_message.h"

#include <sys/socket.h>

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::linux {
namespace {

struct Body {
  std::uint32_t number = 0;
  std::uint8_t odd = 0;
};

TEST(NetlinkMessage, ReadsBackWhatItWrote) {
  NetlinkRequest request(16, NLM_F_ACK);
  request.body(Body{.number = 7}).text(1, "name").u32(2, 99);
  const std::size_t outer = request.nest(3);
  request.attribute(4, "xyz");
  request.end(outer);

  const auto messages = parse_netlink_messages(request.bytes(42));

  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].header.nlmsg_seq, 42U);
  EXPECT_EQ(messages[0].header.nlmsg_type, 16);
  EXPECT_EQ(messages[0].header.nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK);
  EXPECT_EQ(messages[0].fixed<Body>().number, 7U);
  const auto attributes = messages[0].attributes(sizeof(Body));
  ASSERT_EQ(attributes.size(), 3U);
  EXPECT_EQ(attributes[0].bytes, std::string_view("name\0", 5));
  EXPECT_EQ(attributes[2].type, 3);
  const auto inner = parse_netlink_attributes(attributes[2].bytes);
  ASSERT_EQ(inner.size(), 1U);
  EXPECT_EQ(inner[0].bytes, "xyz");
}

TEST(NetlinkMessage, NeverReadsPastTheEnd) {
  NetlinkRequest request(16, 0);
  request.body(Body{}).text(1, "name").u32(2, 99);
  const std::string whole(request.bytes(1));

  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_THROW(parse_netlink_messages(std::string_view(whole).substr(0, size)), Error) << size;
  }
  EXPECT_TRUE(parse_netlink_messages("").empty());
}

TEST(NetlinkMessage, RefusesLengthsThatDoNotFit) {
  for (const std::uint16_t length : std::initializer_list<std::uint16_t>{0, 1, 3, 9, 0xffff}) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    EXPECT_THROW(parse_netlink_attributes(bytes), Error) << length;
  }
  EXPECT_THROW(parse_netlink_attributes("abc"), Error);
  EXPECT_THROW(NetlinkReply{.body = "abc"}.fixed<std::uint32_t>(), Error);
  EXPECT_THROW(NetlinkReply{.body = "abc"}.attributes(4), Error);
}

// NLMSG_ERROR as the kernel sends it: the error, the request's header, explanations.
std::string verdict_message(int error, std::uint16_t flags, const std::string& text) {
  NetlinkRequest message(NLMSG_ERROR, flags);
  nlmsgerr fixed{.error = -error};
  fixed.msg.nlmsg_len = sizeof(nlmsghdr);
  message.body(fixed);
  if (!text.empty()) message.text(NLMSGERR_ATTR_MSG, text);
  return std::string(message.bytes(1));
}

TEST(NetlinkVerdict, TellsTheKernelsWords) {
  const std::string bytes = verdict_message(EEXIST, NLM_F_ACK_TLVS | NLM_F_CAPPED, "File is there");

  const auto verdict = parse_netlink_verdict(parse_netlink_messages(bytes)[0]);

  EXPECT_EQ(verdict.error, EEXIST);
  EXPECT_EQ(verdict.text, "File is there");
}

TEST(NetlinkVerdict, SkipsARequestThatIsSentBack) {
  const std::string bytes = verdict_message(EEXIST, NLM_F_ACK_TLVS, "there");

  EXPECT_EQ(parse_netlink_verdict(parse_netlink_messages(bytes)[0]).text, "there");
}

TEST(NetlinkVerdict, ZeroIsSuccess) {
  const std::string bytes = verdict_message(0, 0, "");

  const auto verdict = parse_netlink_verdict(parse_netlink_messages(bytes)[0]);

  EXPECT_EQ(verdict.error, 0);
  EXPECT_EQ(verdict.text, "");
}

TEST(NetlinkVerdict, RefusesARequestLongerThanTheMessage) {
  NetlinkRequest message(NLMSG_ERROR, NLM_F_ACK_TLVS);
  nlmsgerr fixed{.error = -1};
  fixed.msg.nlmsg_len = 0xffff'ffff;
  message.body(fixed);
  const std::string bytes(message.bytes(1));

  EXPECT_THROW(parse_netlink_verdict(parse_netlink_messages(bytes)[0]), Error);
}

TEST(IpAddressText, GoesBothWays) {
  const auto v4 = parse_ip("10.1.2.3");
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->family, AF_INET);
  EXPECT_EQ(format_ip(v4->family, v4->bytes), "10.1.2.3");
  const auto v6 = parse_ip("fd00::1");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->bytes.size(), 16U);
  EXPECT_EQ(format_ip(v6->family, v6->bytes), "fd00::1");

  for (const char* text : {"", "10.1.2", "10.1.2.3.4", "10.1.2.256", "fd00::g", "1.2.3.4 "}) {
    EXPECT_FALSE(parse_ip(text)) << text;
  }
  EXPECT_THROW(format_ip(AF_INET, "abc"), Error);
}

TEST(MacText, GoesBothWays) {
  const auto mac = parse_mac("02:00:0a:01:fe:FF");
  ASSERT_TRUE(mac);
  EXPECT_EQ(format_mac(*mac), "02:00:0a:01:fe:ff");

  for (const char* text : {"", "02:00", "02:00:0a:01:02:0", "02-00-0a-01-02-03",
                           "02:00:0a:01:02:03:04", "zz:00:0a:01:02:03", "-2:00:0a:01:02:03"}) {
    EXPECT_FALSE(parse_mac(text)) << text;
  }
}

}  // namespace
}  // namespace hearth::linux
