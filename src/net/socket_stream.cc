#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.h"
#include "net/socket_stream_internal.h"
#include "net/tls_internal.h"
#include "net/watchdog_internal.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// How many reads or writes in a row may be served without letting the thread's other connections
// have their turn.
constexpr int kTurn = 16;

// How often to look for a hang-up while unread bytes make waiting for readability useless.
constexpr Duration kDisconnectPoll = std::chrono::seconds(1);

// What a peer that we said goodbye to may still send before we stop listening.
constexpr std::size_t kLingerBytes = 1 << 20;

void drop(Gather& data, std::size_t count) {
  for (asio::const_buffer& part : data) {
    const std::size_t taken = std::min(count, part.size());
    part += taken;
    count -= taken;
  }
}

std::string peer_text(const Socket& socket) {
  error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  const int family = error ? AF_UNSPEC : endpoint.data()->sa_family;
  if (family != AF_INET && family != AF_INET6) return "unix";
  asio::ip::tcp::endpoint address;
  if (endpoint.size() > address.capacity()) return "unknown";
  std::memcpy(address.data(), endpoint.data(), endpoint.size());
  address.resize(endpoint.size());
  const std::string host = address.address().to_string();
  return fmt::format(fmt::runtime(family == AF_INET6 ? "[{}]:{}" : "{}:{}"), host, address.port());
}

class SocketStream final : public ByteStream {
 public:
  SocketStream(Socket socket, std::shared_ptr<TlsContext> tls)
      : socket_(std::move(socket)),
        context_(std::move(tls)),
        reading_(socket_.get_executor()),
        writing_(socket_.get_executor()),
        peer_(peer_text(socket_)) {
    if (context_) tls_.emplace(socket_, context_->context);
    error_code ignored;
    std::ignore = socket_.non_blocking(true, ignored);
    // Small answers must not wait for the acknowledgement of the one before. Not a TCP socket?
    // Then there is nothing to set.
    std::ignore = socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  }

  asio::any_io_executor executor() override { return socket_.get_executor(); }
  asio::awaitable<error_code> shake_hands(asio::ssl::stream_base::handshake_type type,
                                          Duration patience);
  SSL* ssl() { return tls_->native_handle(); }

  asio::awaitable<Transfer> read_some(asio::mutable_buffer into, Duration patience) override;
  asio::awaitable<Transfer> write(Gather data, Duration patience) override;
  asio::awaitable<void> finish(Duration patience) override;
  asio::awaitable<void> wait_disconnect() override;
  bool is_quiet() override { return socket_.is_open() && !has_hung_up() && !is_readable(); }
  void cut() override;
  std::string peer() const override { return peer_; }
  std::string peer_certificate() const override { return peer_certificate_; }
  std::vector<std::string> peer_groups() const override { return peer_groups_; }

 private:
  asio::awaitable<void> say_goodbye(Duration patience);
  bool has_hung_up();
  bool is_readable();

  Socket socket_;
  std::shared_ptr<TlsContext> context_;
  std::optional<asio::ssl::stream<Socket&>> tls_;
  Watchdog reading_;
  Watchdog writing_;
  int reads_this_turn_ = 0;
  int writes_this_turn_ = 0;
  std::string peer_;
  std::string peer_certificate_;
  std::vector<std::string> peer_groups_;
};

asio::awaitable<error_code> SocketStream::shake_hands(asio::ssl::stream_base::handshake_type type,
                                                      Duration patience) {
  const auto state = co_await asio::this_coro::cancellation_state;
  const auto slot = reading_.start(patience, state.slot());
  auto token = asio::bind_cancellation_slot(slot, asio::as_tuple(asio::use_awaitable));
  const auto [error] = co_await tls_->async_handshake(type, token);
  if (!error) {
    peer_certificate_ = verified_common_name(ssl());
    peer_groups_ = verified_organisations(ssl());
  }
  co_return reading_.end(error);
}

asio::awaitable<Transfer> SocketStream::read_some(asio::mutable_buffer into, Duration patience) {
  if (!tls_ && ++reads_this_turn_ <= kTurn) {
    error_code error;
    const std::size_t count = socket_.read_some(into, error);
    if (error != asio::error::would_block) co_return Transfer{error, count};
  }
  reads_this_turn_ = 0;
  const auto state = co_await asio::this_coro::cancellation_state;
  const auto slot = reading_.start(patience, state.slot());
  auto token = asio::bind_cancellation_slot(slot, asio::as_tuple(asio::use_awaitable));
  auto operation = tls_ ? tls_->async_read_some(into, token) : socket_.async_read_some(into, token);
  const auto [error, count] = co_await std::move(operation);
  co_return Transfer{reading_.end(error), count};
}

asio::awaitable<Transfer> SocketStream::write(Gather data, Duration patience) {
  std::size_t written = 0;
  while (asio::buffer_size(data) > 0) {
    if (!tls_ && ++writes_this_turn_ <= kTurn) {
      error_code error;
      const std::size_t count = socket_.write_some(data, error);
      drop(data, count);
      written += count;
      if (!error) continue;
      if (error != asio::error::would_block) co_return Transfer{error, written};
    }
    writes_this_turn_ = 0;
    const auto state = co_await asio::this_coro::cancellation_state;
    const auto slot = writing_.start(patience, state.slot());
    auto token = asio::bind_cancellation_slot(slot, asio::as_tuple(asio::use_awaitable));
    auto operation =
        tls_ ? tls_->async_write_some(data, token) : socket_.async_write_some(data, token);
    const auto [error, count] = co_await std::move(operation);
    const error_code verdict = writing_.end(error);
    drop(data, count);
    written += count;
    if (verdict) co_return Transfer{verdict, written};
  }
  co_return Transfer{{}, written};
}

asio::awaitable<void> SocketStream::say_goodbye(Duration patience) {
  if (tls_) {
    const auto state = co_await asio::this_coro::cancellation_state;
    const auto slot = reading_.start(patience, state.slot());
    auto token = asio::bind_cancellation_slot(slot, asio::as_tuple(asio::use_awaitable));
    const auto [error] = co_await tls_->async_shutdown(token);
    std::ignore = reading_.end(error);
  }
  error_code ignored;
  std::ignore = socket_.shutdown(Socket::shutdown_send, ignored);
}

asio::awaitable<void> SocketStream::finish(Duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  co_await say_goodbye(patience);
  // From here on what arrives is ciphertext or nonsense: read past TLS.
  std::array<char, 4096> waste;
  std::size_t total = 0;
  while (total < kLingerBytes) {
    const Duration left = deadline - std::chrono::steady_clock::now();
    if (left <= Duration::zero()) break;
    const auto state = co_await asio::this_coro::cancellation_state;
    const auto slot = reading_.start(left, state.slot());
    auto token = asio::bind_cancellation_slot(slot, asio::as_tuple(asio::use_awaitable));
    const auto [error, count] = co_await socket_.async_read_some(asio::buffer(waste), token);
    if (reading_.end(error)) break;
    total += count;
  }
  cut();
}

bool SocketStream::has_hung_up() {
  pollfd state{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  return !socket_.is_open() || ::poll(&state, 1, 0) > 0;
}

bool SocketStream::is_readable() {
  pollfd state{.fd = socket_.native_handle(), .events = POLLIN, .revents = 0};
  return ::poll(&state, 1, 0) > 0;
}

asio::awaitable<void> SocketStream::wait_disconnect() {
  asio::steady_timer timer(socket_.get_executor());
  auto token = asio::as_tuple(asio::use_awaitable);
  while (!has_hung_up()) {
    if (is_readable()) {
      timer.expires_after(kDisconnectPoll);
      co_await timer.async_wait(token);
    } else {
      co_await socket_.async_wait(Socket::wait_read, token);
    }
  }
}

void SocketStream::cut() {
  error_code ignored;
  std::ignore = socket_.close(ignored);
}

}  // namespace

std::unique_ptr<ByteStream> make_socket_stream(Socket socket) {
  return std::make_unique<SocketStream>(std::move(socket), nullptr);
}

asio::awaitable<std::unique_ptr<ByteStream>> accept_tls(Socket socket,
                                                        std::shared_ptr<TlsContext> tls,
                                                        Duration patience) {
  auto stream = std::make_unique<SocketStream>(std::move(socket), std::move(tls));
  const error_code error = co_await stream->shake_hands(asio::ssl::stream_base::server, patience);
  if (error) co_return nullptr;
  co_return stream;
}

asio::awaitable<std::unique_ptr<ByteStream>> connect_tls(Socket socket,
                                                         std::shared_ptr<TlsContext> tls,
                                                         std::string host, Duration patience) {
  auto stream = std::make_unique<SocketStream>(std::move(socket), tls);
  expect_server(stream->ssl(), *tls, host);
  const error_code error = co_await stream->shake_hands(asio::ssl::stream_base::client, patience);
  if (error == asio::error::timed_out) fail(Code::timeout, "TLS handshake with '{}'", host);
  if (error) {
    const bool untrusted = SSL_get_verify_result(stream->ssl()) != X509_V_OK;
    fail(untrusted ? Code::unauthenticated : Code::unavailable, "TLS handshake with '{}': {}", host,
         tls_failure(stream->ssl(), error));
  }
  co_return stream;
}

}  // namespace hearth::net
