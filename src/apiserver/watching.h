// Watches over HTTP.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "apiserver/front.h"
#include "net/stream.h"

namespace hearth::apiserver {

// Streams a watch until its time is over, the client leaves, or the server stops. `call` must
// outlive it.
boost::asio::awaitable<void> serve_watch(Front& front, const Call& call, net::Stream& stream);

}  // namespace hearth::apiserver
