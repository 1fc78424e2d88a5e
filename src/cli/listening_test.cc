#include "cli/listening.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::cli {
namespace {

std::string port_of(const Listening& listening) {
  return listening.url.substr(listening.url.rfind(':') + 1);
}

TEST(ListeningTest, ZeroIsAnyFreePort) {
  const Listening listening = listen_on("127.0.0.1", 0, "--metrics-port");

  EXPECT_TRUE(listening.socket);
  EXPECT_TRUE(listening.url.starts_with("http://127.0.0.1:"));
  EXPECT_NE(port_of(listening), "0");
}

TEST(ListeningTest, TheUrlOfEveryAddressLeadsToThisMachine) {
  EXPECT_TRUE(listen_on("0.0.0.0", 0, "--metrics-port").url.starts_with("http://127.0.0.1:"));
}

TEST(ListeningTest, ATakenPortIsNamedWithItsFlag) {
  const Listening first = listen_on("127.0.0.1", 0, "--metrics-port");
  const auto port = static_cast<std::uint16_t>(std::stoi(port_of(first)));

  try {
    listen_on("127.0.0.1", port, "--metrics-port");
    FAIL() << "listening twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::already_exists);
    EXPECT_NE(std::string(error.what()).find(port_of(first)), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("--metrics-port"), std::string::npos);
  }
}

TEST(ListeningTest, NamesAndForeignAddressesAreRefused) {
  // 192.0.2.0/24 is for documentation and nobody's (RFC 5737).
  for (const char* address : {"localhost", "", "300.1.1.1", "192.0.2.1"}) {
    EXPECT_THROW(listen_on(address, 0, "--metrics-port"), Error) << address;
  }
}

TEST(ListeningTest, AnAddressAndAPortMayBeOneWord) {
  EXPECT_TRUE(listen_on("127.0.0.1:0", "--x").url.starts_with("http://127.0.0.1:"));
  EXPECT_TRUE(listen_on("localhost:0", "--x").url.starts_with("http://127.0.0.1:"));
  EXPECT_TRUE(listen_on(":0", "--x").url.starts_with("http://"));
  for (const char* wrong : {"8080", "127.0.0.1", "127.0.0.1:", ":70000", ":x", "a.b:80"}) {
    EXPECT_THROW(listen_on(wrong, "--x"), Error) << wrong;
  }
}

}  // namespace
}  // namespace hearth::cli
