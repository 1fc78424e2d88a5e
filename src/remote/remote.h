// The subresources of a pod that are conversations: log, exec, attach, portforward.
//
// Spoken over WebSocket (v5 and v4 of the channel protocol, and their elders) and over SPDY/3.1,
// also SPDY within WebSocket messages: which client wants what is in ADR 0016.
//
// Each is a handler for net::Router, run after the pod was found and its caller allowed to do this.
// `pod` is read before the first wait and need not live longer; `backend` must. What is wrong
// before the connection is switched over is thrown as model::StatusError; later the client is told
// in the protocol's own way. When the client leaves, the command is ended.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "model/json.h"
#include "net/words.h"

namespace hearth::net {
class Stream;
}

namespace hearth::remote {

class Backend;

boost::asio::awaitable<void> serve_log(net::Request request, net::Stream& stream,
                                       const model::Json& pod, Backend& backend);
boost::asio::awaitable<void> serve_exec(net::Request request, net::Stream& stream,
                                        const model::Json& pod, Backend& backend);
boost::asio::awaitable<void> serve_attach(net::Request request, net::Stream& stream,
                                          const model::Json& pod, Backend& backend);
boost::asio::awaitable<void> serve_portforward(net::Request request, net::Stream& stream,
                                               const model::Json& pod, Backend& backend);

}  // namespace hearth::remote
