// The four verbs for files below the base folder.
#pragma once

#include <string>

#include "guest/users.h"
#include "inside/confined_path.h"
#include "serve/exchange.h"

namespace hearth::runtimeapi {

// Where a request's files are, and whose those are that it makes.
struct Base {
  std::string path;
  guest::User user;
  inside::ConfinedRoot root;
};

// All of them answer, whatever happens.

void answer_upload(serve::Exchange& exchange, const Base& base);
void answer_download(serve::Exchange& exchange, const Base& base, const std::string& path);
void answer_list(serve::Exchange& exchange, const Base& base, const std::string& path);
void answer_exists(serve::Exchange& exchange, const Base& base, const std::string& path);

// {"message":"..."}
void answer_message(serve::Exchange& exchange, unsigned status, std::string_view message);

}  // namespace hearth::runtimeapi
