#include <algorithm>

#include "base/error.h"
#include "model/status.h"
#include "net/byte_stream.h"
#include "net/stream.h"
#include "remote/negotiate_internal.h"

namespace hearth::remote {

namespace asio = boost::asio;

namespace {

constexpr std::string_view kSpdy = "SPDY/3.1";
constexpr std::string_view kProtocolHeader = "X-Stream-Protocol-Version";

// Of every field of that name, comma-separated or not.
std::vector<std::string> list_of(const net::Headers& headers, std::string_view name) {
  std::vector<std::string> all;
  for (const net::Field& field : headers) {
    if (!net::equal_ignoring_case(field.name, name)) continue;
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      std::string_view one = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      while (one.starts_with(' ')) one.remove_prefix(1);
      while (one.ends_with(' ')) one.remove_suffix(1);
      if (!one.empty()) all.emplace_back(one);
    }
  }
  return all;
}

}  // namespace

Upgrade requested_upgrade(const net::Request& request, const net::Stream& stream) {
  if (stream.wants_websocket()) return Upgrade::websocket;
  if (request.headers.has_token("Connection", "upgrade") &&
      request.headers.has_token("Upgrade", kSpdy)) {
    return Upgrade::spdy;
  }
  model::throw_bad_request("Upgrade request required");
}

bool offers_subprotocol(const net::Request& request, std::string_view name) {
  const auto offered = list_of(request.headers, "Sec-WebSocket-Protocol");
  return std::ranges::find(offered, name) != offered.end();
}

void expect_common_subprotocol(const net::Request& request,
                               const std::vector<std::string>& spoken) {
  const auto offered = list_of(request.headers, "Sec-WebSocket-Protocol");
  if (offered.empty() || std::ranges::find_first_of(offered, spoken) != offered.end()) return;
  throw model::StatusError(
      {.code = 403,
       .reason = "Forbidden",
       .message = fmt::format("unable to upgrade: client supports [{}], server accepts [{}]",
                              fmt::join(offered, " "), fmt::join(spoken, " "))});
}

asio::awaitable<net::ByteStream*> accept_spdy(const net::Request& request, net::Stream& stream,
                                              std::string protocol) {
  const auto offered = list_of(request.headers, kProtocolHeader);
  if (offered.empty()) {
    model::throw_bad_request(
        fmt::format("unable to upgrade: header {} does not exist in request with {} headers",
                    kProtocolHeader, request.headers.size()));
  }
  if (std::ranges::find(offered, protocol) == offered.end()) {
    net::Response refusal = net::text_response(
        403, fmt::format("unable to upgrade: unable to negotiate protocol: client supports [{}], "
                         "server accepts [{}]\n",
                         fmt::join(offered, " "), protocol));
    refusal.headers.add("X-Accepted-Stream-Protocol-Versions", protocol);
    co_await stream.respond(std::move(refusal));
    co_return nullptr;
  }
  constexpr std::size_t kMostBody = 4096;
  co_await stream.read_all(kMostBody);
  net::Response head{.status = 101, .headers = {}, .body = {}};
  head.headers = {{"Connection", "Upgrade"},
                  {"Upgrade", std::string(kSpdy)},
                  {std::string(kProtocolHeader), std::move(protocol)}};
  co_return co_await stream.take_over(std::move(head));
}

}  // namespace hearth::remote
