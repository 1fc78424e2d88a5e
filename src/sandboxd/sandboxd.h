// The files of a sandbox as the newer SDKs of Kubernetes' agent-sandbox call for them (sandboxd's
// REST, port 8080). See docs/runtime-api.md.
#pragma once

#include "guest/core.h"
#include "serve/server.h"

namespace hearth::sandboxd {

// `core` must outlive the handler.
serve::Handler make_handler(guest::Core& core);

}  // namespace hearth::sandboxd
