// Heads as they are passed on: what is between two neighbours only is taken out, what the next one
// should know is put in. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gateway/route.h"
#include "gateway/target.h"
#include "http/head_view.h"

namespace hearth::gateway {

struct RequestContext {
  const Target* target = nullptr;
  const Route* route = nullptr;
  std::string_view peer;  // the client's address
  bool is_tls = false;
  bool is_upgrade = false;
};

// Whether the client asks for another protocol.
bool wants_upgrade(const http::HeadView& head);

// Both return what was written to `into`, whose size is kBufferBytes: a head and what we add always
// fit (static_assert in the source).
std::string_view rewrite_request(const http::HeadView& head, const RequestContext& context,
                                 std::span<char> into);
// The head of a request to the control plane, which is of this process: without what is between the
// client and us.
http::Request control_request(const http::HeadView& head, const Target& target);

struct ResponseContext {
  bool is_upgrade = false;
  bool closes = false;
  // Of a sandbox that was named by the path (Target::prefix). A program inside knows nothing of it:
  // where it sends a browser, and what its cookies are for, begins there.
  std::string_view prefix = {};
};
std::string_view rewrite_response(const http::HeadView& head, const ResponseContext& context,
                                  std::span<char> into);

}  // namespace hearth::gateway
