#include "net/connect.h"

#include <sys/un.h>

#include <chrono>
#include <utility>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.h"
#include "net/socket_stream_internal.h"
#include "net/watchdog_internal.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Address = asio::generic::stream_protocol::endpoint;

asio::awaitable<std::vector<Address>> find_addresses(const Endpoint& endpoint) {
  std::vector<Address> addresses;
  if (!endpoint.unix_path.empty()) {
    if (endpoint.unix_path.size() >= sizeof(sockaddr_un::sun_path)) {
      fail(Code::invalid, "'{}' is too long for a unix socket", endpoint.unix_path);
    }
    addresses.emplace_back(asio::local::stream_protocol::endpoint(endpoint.unix_path));
    co_return addresses;
  }
  error_code error;
  const auto literal = asio::ip::make_address(endpoint.host, error);
  if (!error) {
    addresses.emplace_back(asio::ip::tcp::endpoint(literal, endpoint.port));
    co_return addresses;
  }
  const auto executor = co_await asio::this_coro::executor;
  asio::ip::tcp::resolver resolver(executor);
  const auto token = asio::as_tuple(asio::use_awaitable);
  const std::string service = std::to_string(endpoint.port);
  const auto [failure, found] = co_await resolver.async_resolve(endpoint.host, service, token);
  if (failure) fail(Code::unavailable, "look up '{}': {}", endpoint.host, failure.message());
  for (const auto& entry : found) addresses.emplace_back(entry.endpoint());
  co_return addresses;
}

asio::awaitable<error_code> connect_socket(Socket& socket, Address address, Duration patience) {
  Watchdog watchdog(socket.get_executor());
  const auto state = co_await asio::this_coro::cancellation_state;
  const auto slot = watchdog.start(patience, state.slot());
  auto token = asio::bind_cancellation_slot(slot, asio::as_tuple(asio::use_awaitable));
  const auto [error] = co_await socket.async_connect(address, token);
  co_return watchdog.end(error);
}

}  // namespace

std::string Endpoint::text() const {
  return unix_path.empty() ? fmt::format("{}:{}", host, port) : unix_path;
}

asio::awaitable<std::unique_ptr<ByteStream>> connect(Endpoint endpoint, Duration patience) {
  const auto executor = co_await asio::this_coro::executor;
  const std::vector<Address> addresses = co_await find_addresses(endpoint);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  error_code error = asio::error::host_not_found;
  for (const Address& address : addresses) {
    Socket socket(executor);
    const Duration left = deadline - std::chrono::steady_clock::now();
    error = co_await connect_socket(socket, address, left);
    if (error) continue;
    if (!endpoint.tls) co_return make_socket_stream(std::move(socket));
    co_return co_await connect_tls(std::move(socket), endpoint.tls, endpoint.host, left);
  }
  if (error == asio::error::timed_out) fail(Code::timeout, "connect to {}", endpoint.text());
  fail(Code::unavailable, "connect to {}: {}", endpoint.text(), error.message());
}

}  // namespace hearth::net
