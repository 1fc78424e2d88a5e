#include "guest/surfaces.h"

#include <algorithm>
#include <array>
#include <charconv>

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

std::uint16_t parse_port(std::string_view text, std::string_view what) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0)
    fail(Code::invalid, "{}: '{}' is no port", what, text);
  return port;
}

SurfacePort parse_surface(std::string_view word, std::string_view what) {
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const auto surface = find_surface(name);
  if (!surface) fail(Code::invalid, "{}: there is no surface '{}'", what, name);
  if (equals == std::string_view::npos) return {*surface, usual_port(*surface)};
  return {*surface, parse_port(word.substr(equals + 1), what)};
}

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

std::vector<SurfacePort> parse_surfaces(std::string_view words, std::string_view what) {
  std::vector<SurfacePort> surfaces;
  if (words == "none") return surfaces;
  while (!words.empty()) {
    const std::size_t comma = words.find(',');
    std::string_view word = words.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    if (surfaces.size() == kMostPorts)
      fail(Code::invalid, "{}: more than {} ports", what, kMostPorts);
    if (!word.empty()) surfaces.push_back(parse_surface(word, what));
    words.remove_prefix(comma == std::string_view::npos ? words.size() : comma + 1);
  }
  return surfaces;
}

std::vector<SurfacePort> every_surface() {
  std::vector<SurfacePort> all;
  for (const Known& each : kKnown) all.push_back({.surface = each.surface, .port = each.port});
  return all;
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
