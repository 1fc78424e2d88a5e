// Which sandbox, and which of its ports, a request is for.
//
// In the order in which they are looked for:
//   E2b-Sandbox-Id and E2b-Sandbox-Port                 an E2B sandbox
//   X-Sandbox-ID, -Namespace, -Port (-Pod-IP)           any sandbox, as sandbox-router has it
//   Host: PORT-ID.anything                              an E2B sandbox
//   /sandboxes/ID/PORT/rest                             an E2B sandbox; it sees /rest
//   /files?...signature=...                             the one whose token made the signature
//   anything else                                       the control plane
#pragma once

#include <cstdint>
#include <string_view>

#include "http/head_view.h"

namespace hearth::gateway {

enum class Dialect {
  control,
  health,     // GET /healthz
  e2b,        // by id
  router,     // by namespace and name
  signature,  // by whose token it is
};

// Borrows the head's bytes.
struct Target {
  Dialect dialect = Dialect::control;
  std::string_view id;          // or name
  std::string_view ns;          // of Dialect::router
  std::uint16_t port = 0;       //
  std::string_view pod_ip;      // of Dialect::router, if the client said one
  std::string_view host;        // that was asked for, with its port
  std::string_view path;        // as the sandbox is to see it, still encoded
  std::string_view path_query;  // with its query; begins with '/' or '?', or is empty or "*"
  std::string_view query;
  std::string_view prefix;  // "/sandboxes/ID/PORT", where the path named the sandbox

  // Set if it cannot be understood.
  unsigned problem_status = 0;
  std::string_view problem;

  bool names_sandbox() const { return dialect == Dialect::e2b || dialect == Dialect::router; }
};

// It is put before every path that an answer names.
inline constexpr std::size_t kMostPrefixBytes = 200;

inline constexpr std::uint16_t kEnvdPort = 49983;
inline constexpr std::uint16_t kRouterPort = 8888;  // unless X-Sandbox-Port says another

Target find_target(const http::HeadView& head);

// Whether it is an id as E2B has them: 1 to 63 of a-z and 0-9.
bool is_e2b_id(std::string_view text);

}  // namespace hearth::gateway
