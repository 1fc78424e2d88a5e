// The runtime API of Kubernetes' agent-sandbox, as its SDKs call it by default (port 8888): run a
// command, move files. See docs/runtime-api.md.
#pragma once

#include "guest/core.h"
#include "serve/server.h"

namespace hearth::runtimeapi {

// `core` must outlive the handler.
serve::Handler make_handler(guest::Core& core);

}  // namespace hearth::runtimeapi
