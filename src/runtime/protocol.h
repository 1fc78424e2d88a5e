// What is said over the runtime's socket: one request, one reply, in order; a connection may be
// used for many. Some replies carry a connected guest socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/wire.h"
#include "runtime/runtime.h"

namespace hearth::runtime {

// The socket's file, in the state folder.
inline constexpr const char* kSocketName = "runtime.sock";

// Raised when a message changes its meaning.
inline constexpr std::uint32_t kProtocolVersion = 1;

struct HelloRequest {};
struct CreateRequest {
  SandboxSpec spec;
};
struct ConnectRequest {
  std::string id;
};
struct DestroyRequest {
  std::string id;
};
struct GetRequest {
  std::string id;
};
struct ListRequest {};
// The runtime answers, then ends: with every sandbox, or leaving them for its next life.
struct ShutdownRequest {
  bool destroy_all = false;
};
using Request = std::variant<HelloRequest, CreateRequest, ConnectRequest, DestroyRequest,
                             GetRequest, ListRequest, ShutdownRequest>;

struct Hello {
  std::uint32_t protocol = kProtocolVersion;
  std::string version;
  std::uint32_t pid = 0;
  std::string cgroups;        // what limits with, for people
  std::uint32_t adopted = 0;  // sandboxes found alive at start
  std::uint32_t swept = 0;    // remains of dead ones removed at start
};
struct Done {};
struct Sandboxes {
  std::vector<Sandbox> all;
};
struct Failed {
  Code code = Code::internal;
  std::string message;
};
using Reply = std::variant<Hello, Done, Sandboxes, Failed>;

std::string encode(const Request& request);
std::string encode(const Reply& reply);

// Throw Error(invalid).
Request parse_request(std::string_view bytes);
Reply parse_reply(std::string_view bytes);

// As parts of other messages.
void put(wire::Writer& out, const SandboxSpec& spec);
SandboxSpec read_spec(wire::Reader& in);

}  // namespace hearth::runtime
