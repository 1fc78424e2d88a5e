#include "network/resolver.h"

#include <gtest/gtest.h>

#include "network/policy.h"

namespace hearth::network {
namespace {

std::string chosen(std::string_view resolv_conf, std::string_view upstream = {}) {
  const auto found = choose_resolver(resolv_conf, upstream);
  return found ? address_text(*found) : "none";
}

TEST(Resolver, IsTheFirstThatIsIpv4) {
  EXPECT_EQ(chosen("nameserver 1.1.1.1\nnameserver 8.8.8.8\n"), "1.1.1.1");
  EXPECT_EQ(chosen("# hi\nsearch example.com\nnameserver fd00::1\n \tnameserver\t9.9.9.9 # x"),
            "9.9.9.9");
  EXPECT_EQ(chosen("nameserver 1.1.1.1\r\n"), "1.1.1.1");
}

TEST(Resolver, PrefersWhatIsBehindAStub) {
  EXPECT_EQ(chosen("nameserver 127.0.0.53\n", "nameserver 10.0.0.2\n"), "10.0.0.2");
  EXPECT_EQ(chosen("nameserver 127.0.0.53\n"), "127.0.0.53");
  EXPECT_EQ(chosen("nameserver 1.1.1.1\n", "nameserver 10.0.0.2\n"), "1.1.1.1");
  EXPECT_EQ(chosen("", "nameserver 10.0.0.2\n"), "10.0.0.2");
}

TEST(Resolver, NonsenseIsPassedOver) {
  EXPECT_EQ(chosen(""), "none");
  EXPECT_EQ(
      chosen("nameserver\nnameserver \nnameserver x\nnameserver 1.2.3.0/24\n#nameserver 1.1.1.1"),
      "none");
  EXPECT_EQ(chosen("nameservers 1.1.1.1\nnameserver1.1.1.1\n\n\n"), "none");
}

}  // namespace
}  // namespace hearth::network
