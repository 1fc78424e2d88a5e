// docker-credential-NAME: programs that keep credentials in a keyring.
#pragma once

#include <string>
#include <string_view>

#include "registry/credentials.h"

namespace hearth::registry {

// What `docker-credential-NAME get` says about `server`; empty when it has nothing. The server's
// name goes in by standard input, the secret comes back by standard output. Throws Error: invalid
// (a name that is no file name, an answer that makes no sense), not_found (no such program),
// timeout.
Credentials ask_credential_helper(const std::string& name, const std::string& server);

// The answer, {"Username": ..., "Secret": ...}. Throws Error(invalid) without quoting it.
Credentials parse_helper_answer(std::string_view json);

}  // namespace hearth::registry
