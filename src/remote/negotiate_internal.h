// Which protocol a connection switches to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "net/words.h"

namespace hearth::net {
class ByteStream;
class Stream;
}  // namespace hearth::net

namespace hearth::remote {

enum class Upgrade { websocket, spdy };

// Throws model::StatusError for a request that asks for neither.
Upgrade requested_upgrade(const net::Request& request, const net::Stream& stream);

// Throws model::StatusError, 403, for a client that offers subprotocols and none of these.
void expect_common_subprotocol(const net::Request& request, const std::vector<std::string>& spoken);
bool offers_subprotocol(const net::Request& request, std::string_view name);

// Switches to SPDY/3.1 with `protocol` on top. Null: the client does not speak it, and was told so.
boost::asio::awaitable<net::ByteStream*> accept_spdy(const net::Request& request,
                                                     net::Stream& stream, std::string protocol);

}  // namespace hearth::remote
