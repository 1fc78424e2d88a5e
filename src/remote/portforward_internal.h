// The ways to forward a port.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "net/words.h"
#include "remote/backend.h"
#include "remote/negotiate_internal.h"

namespace hearth::remote {

// `ports`: as the query has them, which only the last way below needs.
boost::asio::awaitable<void> serve_forward(net::Request request, net::Stream& stream,
                                           Upgrade upgrade, std::vector<std::string> ports,
                                           Container container, Backend& backend);

// WebSocket with two channels a port: the Python client.
boost::asio::awaitable<void> forward_over_channels(net::Request request, net::Stream& stream,
                                                   std::vector<std::uint16_t> ports,
                                                   Container container, Backend& backend);

}  // namespace hearth::remote
