// /v1/files/...: what is below the root folder, read, written and removed.
#pragma once

#include <string>
#include <string_view>

#include "guest/users.h"
#include "inside/confined_path.h"
#include "serve/exchange.h"

namespace hearth::sandboxd {

// Where a request's files are, and whose those are that it makes.
struct Root {
  std::string path;
  guest::User user;
  inside::ConfinedRoot folder;
};

// Relative to the root: `path` as it is, or what is left of an absolute one below the root. Throws
// Error(forbidden) for absolute paths to elsewhere.
std::string relative_path(std::string_view path, std::string_view root);

// Files, folders. They throw Error, which the caller translates; nothing was sent then.

void answer_get(serve::Exchange& exchange, const Root& root, const std::string& path);
void answer_put(serve::Exchange& exchange, const Root& root, const std::string& path);
void answer_delete(serve::Exchange& exchange, const Root& root, const std::string& path);

}  // namespace hearth::sandboxd
