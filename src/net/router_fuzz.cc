// Targets and routes: percent-decoding is refused or exact, no parameter holds a NUL or a dot
// segment, and every parameter of a pattern is there when its route is chosen.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/router.h"
#include "net/words.h"

namespace hearth::net {
namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

Router make_router() {
  const auto handler = [](const Request&) { return Response(); };
  Router router;
  router.add("GET", "/", handler);
  router.add("GET", "/a/b", handler);
  router.add("GET", "/a/{x}", handler);
  router.add("POST", "/a/{x}/{y}", handler);
  router.add("GET", "/{x}/b/{rest...}", handler);
  router.add("*", "/{x}/{y}/c", handler);
  router.add("PUT", "/a/{rest...}", handler);
  return router;
}

bool has_dots(std::string_view path) {
  const std::string padded = '/' + std::string(path) + '/';
  return padded.find("/./") != std::string::npos || padded.find("/../") != std::string::npos;
}

void route(std::string_view method, std::string_view text) {
  static const Router router = make_router();
  const auto target = parse_target(text);
  if (!target) return;
  check(target->path.starts_with('/') || target->path == "*");
  Request request;
  request.method = method;
  request.path = target->path;
  request.query = target->query;
  const auto match = router.find(request);
  check((match.route != nullptr) != match.problem.has_value());
  check(match.surface != nullptr);
  if (match.route == nullptr) {
    const unsigned status = match.problem->status;
    check(status == 400 || status == 404 || (status == 405 && !match.allow.empty()));
    return;
  }
  check(request.parameters.size() == match.route->names.size());
  for (const auto& [name, value] : request.parameters) {
    check(value.find('\0') == std::string::npos);
    check(!has_dots(value));
    check(name == "rest" || !value.empty());
  }
}

void decode(std::string_view text) {
  const auto decoded = percent_decode(text);
  if (decoded) {
    check(decoded->size() <= text.size());
    check(percent_decode(percent_encode(*decoded)) == decoded);
  }
  try {
    for (const auto& [name, value] : query_parameters(text)) {
      check((name + value).find('\0') == std::string::npos);
    }
  } catch (const Error& error) {
    check(error.code() == Code::invalid);
  }
}

}  // namespace
}  // namespace hearth::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 4096) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr std::string_view kMethods[] = {"GET", "POST", "PUT", "HEAD", "BREW"};
  hearth::net::decode(text);
  if (text.find('\0') == std::string_view::npos) {
    hearth::net::route(kMethods[data[0] % std::size(kMethods)], text);
  }
  return 0;
}
