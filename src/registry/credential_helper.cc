#include "registry/credential_helper.h"

#include <algorithm>

#include <boost/json/value.hpp>

#include "base/error.h"
#include "linux/program.h"
#include "registry/json_internal.h"

namespace hearth::registry {
namespace {

constexpr std::size_t kMaxAnswer = 64 << 10;
// A keyring may ask a person for its password.
constexpr Duration kPatience = std::chrono::seconds(60);
constexpr std::size_t kMaxName = 64;

// Part of a file name that is looked for in PATH: no way out of it.
bool is_helper_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

}  // namespace

Credentials parse_helper_answer(std::string_view text) {
  const boost::json::value value = parse_json(text, "the answer");
  const auto& object = object_of(value, "the answer");
  Credentials credentials{.username = find_text(object, "Username"),
                          .password = find_text(object, "Secret")};
  if (credentials.username == "<token>") {
    credentials = {.identity_token = std::move(credentials.password)};
  }
  return credentials;
}

Credentials ask_credential_helper(const std::string& name, const std::string& server) {
  if (!is_helper_name(name)) {
    fail(Code::invalid, "the Docker configuration names '{}' as a credential helper", name);
  }
  const std::string program = "docker-credential-" + name;
  const linux::ProgramResult result =
      linux::run_program({program, "get"}, server, kMaxAnswer, kPatience);
  // It has nothing; Docker's helpers say so by failing.
  if (!(result.status == linux::ExitStatus{})) return {};
  try {
    return parse_helper_answer(result.output);
  } catch (const Error& error) {
    fail(Code::invalid, "'{}': {}", program, error.what());
  }
}

}  // namespace hearth::registry
