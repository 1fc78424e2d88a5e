// Where a client goes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "base/clock.h"
#include "net/byte_stream.h"
#include "net/tls.h"

namespace hearth::net {

struct Endpoint {
  std::string host = "127.0.0.1";  // name or address
  std::uint16_t port = 0;
  std::string unix_path = {};            // in place of both
  std::shared_ptr<TlsContext> tls = {};  // null: plain

  // For people: "127.0.0.1:80", "/run/x.sock".
  std::string text() const;
};

// A connection on the executor of the awaiting coroutine. Throws Error: timeout, unavailable,
// unauthenticated (a certificate that does not verify). Patience does not include looking up a
// name, which takes as long as the system's resolver likes; addresses are not looked up.
boost::asio::awaitable<std::unique_ptr<ByteStream>> connect(Endpoint endpoint, Duration patience);

}  // namespace hearth::net
