// What a client is told when its request does not get through, in the words of its dialect.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/target.h"

namespace hearth::gateway {

// Why, and what about.
struct Refusal {
  unsigned status = 502;
  std::string_view message;
  bool shows_port = false;
  bool is_envds = false;  // in its words: there is no gateway where clients look for it
};

// Messages that clients compare.
inline constexpr Refusal kNotFound{502, "The sandbox was not found"};
inline constexpr Refusal kPortClosed{502, "The sandbox is running but port is not open", true};

inline constexpr Refusal kBusy{503, "The gateway is too busy"};
inline constexpr Refusal kBadSignature{
    .status = 401, .message = "invalid signature", .is_envds = true};

struct RefusalContext {
  Dialect dialect = Dialect::control;
  std::string_view id;
  std::uint16_t port = 0;
  bool is_browser = false;  // then it is a page for people
  bool is_head = false;     // no body may follow
  bool closes = false;
};

// What every answer of the gateway's own and of the control plane says: pages of any origin may
// read it. Who asks proves himself with headers, never with cookies, so no page gets at more than
// it has. (Those who are let in for being on this machine are no pages: access.cc.)
inline constexpr std::string_view kCorsFields =
    "Access-Control-Allow-Origin: *\r\n"
    "Access-Control-Expose-Headers: X-Next-Token, X-Total-Running, Retry-After\r\n";

// The whole answer.
std::string render_refusal(const Refusal& refusal, const RefusalContext& context);
// The same with a body that is JSON already.
std::string render_answer(unsigned status, std::string_view type, std::string_view body,
                          const RefusalContext& context);

// The same to a browser that asks whether a page may send those headers: it may, but for those of
// programs on this machine (X-Sandbox-...).
std::string render_cors_answer(std::string_view wanted_headers, bool closes);

// Whether that User-Agent is one of a person's browser.
bool is_browser(std::string_view user_agent);

}  // namespace hearth::gateway
