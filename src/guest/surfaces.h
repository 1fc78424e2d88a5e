// The surfaces of a sandbox: who may talk to it over its own network, in whose language.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/wire.h"
#include "guest/core.h"
#include "linux/fd.h"

namespace hearth::guest {

// Crosses process boundaries as a number: do not renumber.
enum class Surface : std::uint8_t {
  envd = 1,         // processes and files, as the E2B SDKs call them
  interpreter = 2,  // code cells, as the E2B code interpreter SDKs call them
  runtime_api = 3,  // commands and files, as the Kubernetes agent-sandbox SDKs call them
  sandboxd = 4,     // files, as the newer of these do
};

// "envd", "code", "runtime-api", "sandboxd".
std::string_view to_string(Surface surface);
std::optional<Surface> find_surface(std::string_view name);
// Where clients look for it.
std::uint16_t usual_port(Surface surface);

struct SurfacePort {
  Surface surface = Surface::envd;
  std::uint16_t port = 0;

  bool operator==(const SurfacePort&) const = default;
};

// "envd, runtime-api=9000": names, each with a port where it is not the usual one; "none" for none.
// `what` says where the words come from. Throws Error(invalid).
std::vector<SurfacePort> parse_surfaces(std::string_view words, std::string_view what);
// All of them, each on its usual port.
std::vector<SurfacePort> every_surface();

struct Door {
  Surface surface = Surface::envd;
  linux::Fd listen;
};

void put(wire::Writer& out, const std::vector<SurfacePort>& ports);
// Throws Error(invalid).
std::vector<SurfacePort> read_surface_ports(wire::Reader& in);

// Listening sockets on all addresses of this network namespace. Throws Error.
std::vector<Door> make_doors(const std::vector<SurfacePort>& ports);

// Begins to serve, in threads of its own, and returns. Called once, when somebody knocks for the
// first time: a sandbox that nobody talks to this way pays for its sockets and nothing else. The
// core outlives everything.
using OpenDoors = std::function<void(std::vector<Door> doors, Core& core)>;

}  // namespace hearth::guest
