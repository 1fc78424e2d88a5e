// The ByteStream of a real socket.
#pragma once

#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>

#include "net/byte_stream.h"
#include "net/tls.h"

namespace hearth::net {

using Socket = boost::asio::generic::stream_protocol::socket;

std::unique_ptr<ByteStream> make_socket_stream(Socket socket);

// Both shake hands first. The server's form returns null when that fails (strangers knock all
// day); the client's throws Error: unauthenticated for a certificate that does not verify.
boost::asio::awaitable<std::unique_ptr<ByteStream>> accept_tls(Socket socket,
                                                               std::shared_ptr<TlsContext> tls,
                                                               Duration patience);
boost::asio::awaitable<std::unique_ptr<ByteStream>> connect_tls(Socket socket,
                                                                std::shared_ptr<TlsContext> tls,
                                                                std::string host,
                                                                Duration patience);

}  // namespace hearth::net
