#include "network/services.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::network {
namespace {

std::uint32_t address(const char* text) {
  return parse_cidr(text).address;
}

Service some_service() {
  return {.address = address("10.96.0.10"),
          .port = 80,
          .targets = {{.address = address("10.77.0.2"), .port = 8000}}};
}

TEST(Services, GoOverTheWire) {
  Service udp = some_service();
  udp.protocol = Protocol::udp;
  udp.targets.clear();
  const std::vector<Service> services = {some_service(), udp};
  wire::Writer out;
  put(out, services);
  const std::string bytes = std::move(out).take();
  EXPECT_EQ(wire::parse_whole(bytes, [](wire::Reader& in) { return read_services(in); }), services);
}

TEST(Services, WhatIsNoneIsRefused) {
  const auto refuses = [](auto spoil) {
    Service service = some_service();
    spoil(service);
    EXPECT_THROW(check(std::vector{service}), Error);
  };
  refuses([](Service& it) { it.address = address("8.8.8.8"); });
  refuses([](Service& it) { it.address = address("10.112.0.1"); });
  refuses([](Service& it) { it.port = 0; });
  refuses([](Service& it) { it.protocol = Protocol::any; });
  refuses([](Service& it) { it.targets[0].port = 0; });
  refuses([](Service& it) { it.targets.resize(kMostTargets + 1, it.targets[0]); });
  EXPECT_THROW(check(std::vector(kMostServices + 1, some_service())), Error);
  EXPECT_NO_THROW(check(std::vector{some_service()}));
}

}  // namespace
}  // namespace hearth::network
