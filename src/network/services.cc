#include "network/services.h"

#include "base/error.h"

namespace hearth::network {
namespace {

std::uint16_t read_port(wire::Reader& in) {
  const std::uint32_t port = in.u32();
  if (port > 65535) fail(Code::invalid, "{} is no port of a service", port);
  return static_cast<std::uint16_t>(port);
}

void check_one(const Service& service) {
  if (!kServiceRange.contains(service.address))
    fail(Code::invalid, "{} is no address of a service: those are in {}",
         address_text(service.address), to_string(kServiceRange));
  if (service.protocol != Protocol::tcp && service.protocol != Protocol::udp)
    fail(Code::invalid, "service {}: {} is no protocol with ports", address_text(service.address),
         static_cast<unsigned>(service.protocol));
  if (service.port == 0)
    fail(Code::invalid, "service {} has no port", address_text(service.address));
  if (service.targets.size() > kMostTargets)
    fail(Code::invalid, "service {}: {} targets are too many: at most {}",
         address_text(service.address), service.targets.size(), kMostTargets);
  for (const ServiceTarget& target : service.targets)
    if (target.port == 0)
      fail(Code::invalid, "service {}: its target {} has no port", address_text(service.address),
           address_text(target.address));
}

}  // namespace

void check(const std::vector<Service>& services) {
  if (services.size() > kMostServices)
    fail(Code::invalid, "{} services are too many: at most {}", services.size(), kMostServices);
  for (const Service& service : services) check_one(service);
}

void put(wire::Writer& out, const std::vector<Service>& services) {
  out.u32(static_cast<std::uint32_t>(services.size()));
  for (const Service& service : services) {
    out.u32(service.address).u8(static_cast<std::uint8_t>(service.protocol)).u32(service.port);
    out.u32(static_cast<std::uint32_t>(service.targets.size()));
    for (const ServiceTarget& target : service.targets) out.u32(target.address).u32(target.port);
  }
}

std::vector<Service> read_services(wire::Reader& in) {
  const std::uint32_t count = in.u32();
  if (count > kMostServices) fail(Code::invalid, "{} services are too many", count);
  std::vector<Service> services;
  for (std::uint32_t left = count; left > 0; --left) {
    Service service;
    service.address = in.u32();
    service.protocol = static_cast<Protocol>(in.u8());
    service.port = read_port(in);
    const std::uint32_t targets = in.u32();
    if (targets > kMostTargets)
      fail(Code::invalid, "{} targets of a service are too many", targets);
    for (std::uint32_t i = 0; i < targets; ++i) {
      const std::uint32_t address = in.u32();
      service.targets.push_back({.address = address, .port = read_port(in)});
    }
    services.push_back(std::move(service));
  }
  check(services);
  return services;
}

}  // namespace hearth::network
