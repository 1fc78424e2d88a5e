// Code cells over HTTP, as the E2B code interpreter SDKs ask for them: contexts, and NDJSON streams
// of what their cells write, show and give.
//
//   GET    /health
//   POST   /execute                 {code, context_id | language, env_vars}
//   GET    /contexts, POST /contexts {language, cwd}
//   POST   /contexts/ID/restart
//   DELETE /contexts/ID
//
// Errors are plain text. Kernels are started when they are needed; the default one for Python as
// soon as anybody asks for anything. See docs/interpreter.md.
#pragma once

#include "guest/core.h"
#include "serve/server.h"

namespace hearth::interpreter {

// `core` must outlive the handler, and whoever serves it the kernels' last words: what it holds
// ends with it.
serve::Handler make_handler(guest::Core& core);

}  // namespace hearth::interpreter
