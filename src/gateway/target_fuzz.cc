// Heads of requests and answers: whatever is taken for one is passed on as exactly one, which the
// strict parser of http/head.h reads as the same message; and targets hold nothing but ids and
// ports.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "gateway/access.h"
#include "gateway/limits.h"
#include "gateway/rewrite.h"
#include "gateway/target.h"
#include "http/head.h"
#include "http/head_view.h"

namespace hearth::gateway {
namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

const http::Limits kLimits{.head_bytes = kBufferBytes, .fields = 256, .target_bytes = kBufferBytes};

void check_target(const Target& target) {
  if (target.problem_status != 0) {
    check(target.problem_status == 400);
    return;
  }
  if (target.dialect == Dialect::e2b) check(is_e2b_id(target.id) && target.port != 0);
  if (target.dialect == Dialect::router) {
    check(!target.id.empty() && target.id.size() <= 63 && target.port != 0);
    check(target.id.find_first_of("./ ") == std::string_view::npos);
  }
}

void fuzz_request(std::string_view bytes) {
  http::HeadView head;
  if (http::parse_request_head(bytes, kHeadBytes, head)) return;
  const Target target = find_target(head);
  check_target(target);
  if (target.problem_status != 0) return;
  Route route;
  route.access = Access::team_key;
  route.envd_token = "t";
  route.needs_traffic_token = true;
  route.mask_host = "m:${PORT}";
  const AccessRules rules{.key_owner = [](auto) { return KeyOwner{}; }};
  if (target.names_sandbox()) check(check_access(rules, head, target, route).has_value());

  std::vector<char> room(kBufferBytes);
  const http::Request control = control_request(head, target);
  check(control.method == head.method && !control.target.empty());
  check(control.headers.find("X-Forwarded-For") == nullptr);

  const RequestContext context{
      .target = &target, .route = &route, .peer = "1.2.3.4", .is_upgrade = wants_upgrade(head)};
  const std::string_view text = rewrite_request(head, context, room);
  http::HeadScanner scanner;
  check(scanner.scan(text) == http::HeadScanner::Found::complete && scanner.size() == text.size());
  http::Head read;
  const auto problem = http::parse_request_head(text, kLimits, read);
  check(!problem || head.minor == 0);  // an old client may leave the host out
  if (problem) return;
  check(read.framing.kind == head.framing.kind && read.framing.length == head.framing.length);
  check(read.method == head.method);
  check(read.headers.find("X-API-Key") == nullptr);
  check(read.headers.find("E2B-Traffic-Access-Token") == nullptr);
}

void fuzz_response(std::string_view bytes) {
  http::HeadView head;
  if (http::parse_response_head(bytes, false, head)) return;
  std::vector<char> room(kBufferBytes);
  const std::string_view text = rewrite_response(head, {.closes = true}, room);
  http::HeadScanner scanner;
  check(scanner.scan(text) == http::HeadScanner::Found::complete && scanner.size() == text.size());
  http::Head read;
  if (head.minor == 0) return;  // it is answered as 1.1, which has more to say about bodies
  check(!http::parse_response_head(text, kLimits, false, read));
  check(read.framing.kind == head.framing.kind && read.framing.length == head.framing.length);
  check(read.status == head.status && !read.wants_keep_alive());
  const std::string_view below =
      rewrite_response(head, {.closes = true, .prefix = "/sandboxes/i/1"}, room);
  http::Head again;
  check(!http::parse_response_head(below, kLimits, false, again));
  check(again.framing.kind == head.framing.kind && again.framing.length == head.framing.length);
}

}  // namespace
}  // namespace hearth::gateway

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  hearth::http::HeadScanner scanner;
  if (scanner.scan(bytes) != hearth::http::HeadScanner::Found::complete) return 0;
  if (scanner.size() > hearth::gateway::kHeadBytes) return 0;
  const std::string_view head = bytes.substr(0, scanner.size());
  hearth::gateway::fuzz_request(head);
  hearth::gateway::fuzz_response(head);
  return 0;
}
