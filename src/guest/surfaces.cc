#include "guest/surfaces.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "linux/tcp.h"

namespace hearth::guest {
namespace {

struct Known {
  Surface surface;
  std::string_view name;
  std::uint16_t port;
};
constexpr std::array<Known, 4> kKnown = {{
    {.surface = Surface::envd, .name = "envd", .port = 49983},
    {.surface = Surface::interpreter, .name = "code", .port = 49999},
    {.surface = Surface::runtime_api, .name = "runtime-api", .port = 8888},
    {.surface = Surface::sandboxd, .name = "sandboxd", .port = 8080},
}};

const Known& known(Surface surface) {
  const auto* found = std::ranges::find(kKnown, surface, &Known::surface);
  HEARTH_ASSERT(found != kKnown.end());
  return *found;
}

// One surface may listen on several ports, and somebody might ask for a few.
constexpr std::uint32_t kMostPorts = 64;

// Connections that wait to be taken; SDKs open hundreds at once.
constexpr int kBacklog = 1024;

}  // namespace

std::string_view to_string(Surface surface) {
  return known(surface).name;
}

std::optional<Surface> find_surface(std::string_view name) {
  const auto* found = std::ranges::find(kKnown, name, &Known::name);
  if (found == kKnown.end()) return std::nullopt;
  return found->surface;
}

std::uint16_t usual_port(Surface surface) {
  return known(surface).port;
}

void put(wire::Writer& out, const std::vector<SurfacePort>& ports) {
  out.u32(static_cast<std::uint32_t>(ports.size()));
  for (const SurfacePort& one : ports) out.u8(static_cast<std::uint8_t>(one.surface)).u32(one.port);
}

std::vector<SurfacePort> read_surface_ports(wire::Reader& in) {
  const std::uint32_t count = in.u32();
  if (count > kMostPorts)
    fail(Code::invalid, "{} ports of surfaces; at most {}", count, kMostPorts);
  std::vector<SurfacePort> ports;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint8_t surface = in.u8();
    const std::uint32_t port = in.u32();
    if (surface < 1 || surface > kKnown.size())
      fail(Code::invalid, "there is no surface {}", surface);
    if (port < 1 || port > UINT16_MAX) fail(Code::invalid, "there is no port {}", port);
    ports.push_back(
        {.surface = static_cast<Surface>(surface), .port = static_cast<std::uint16_t>(port)});
  }
  return ports;
}

std::vector<Door> make_doors(const std::vector<SurfacePort>& ports) {
  std::vector<Door> doors;
  for (const SurfacePort& each : ports)
    doors.push_back(
        {.surface = each.surface,
         .listen = linux::listen_tcp(linux::kEveryAddress, each.port, kBacklog).socket});
  return doors;
}

}  // namespace hearth::guest
