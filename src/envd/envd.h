// The surface that E2B's SDKs call envd: processes and files of a sandbox, over HTTP.
//
// A REST part (health, files, metrics) and two services in the Connect protocol. docs/envd.md has
// what of it is here and where it differs.
#pragma once

#include <string>
#include <string_view>

#include "guest/core.h"
#include "serve/server.h"

namespace hearth::envd {

// What clients decide by which of their features to use.
inline constexpr std::string_view kEnvdVersion = "0.6.13";

// `core` must outlive the handler.
serve::Handler make_handler(guest::Core& core);

// A request for a command that cannot be started: all that a first command needs is touched, from
// the parser to who gives birth to it.
std::string make_rehearsal(const guest::Core& core);

}  // namespace hearth::envd
