#include "net/stream.h"

#include <utility>

#include "base/error.h"
#include "net/connection_internal.h"
#include "net/websocket.h"

namespace hearth::net {

namespace asio = boost::asio;

asio::awaitable<std::string_view> Stream::read_some() {
  return connection_.read_some();
}

asio::awaitable<std::string> Stream::read_all(std::size_t limit) {
  std::string all;
  while (true) {
    const std::string_view piece = co_await connection_.read_some();
    if (piece.empty()) co_return all;
    if (piece.size() > limit - all.size()) {
      fail(Code::exhausted, "the body is longer than {} bytes", limit);
    }
    all += piece;
  }
}

void Stream::set_read_patience(Duration patience) {
  connection_.set_read_patience(patience);
}

asio::awaitable<void> Stream::write_head(Response head) {
  return connection_.write_head(std::move(head));
}

asio::awaitable<void> Stream::write(std::string_view bytes) {
  return connection_.write(bytes);
}

asio::awaitable<void> Stream::respond(Response response) {
  return connection_.respond(std::move(response));
}

bool Stream::wants_websocket() const {
  return connection_.wants_websocket();
}

asio::awaitable<std::unique_ptr<WebSocket>> Stream::upgrade(WebSocketOptions options) {
  return connection_.upgrade(std::move(options));
}

asio::awaitable<ByteStream*> Stream::take_over(Response head) {
  return connection_.take_over(std::move(head));
}

asio::awaitable<void> Stream::wait_disconnect() {
  return connection_.wait_disconnect();
}

bool Stream::is_draining() const {
  return connection_.is_draining();
}

void Stream::on_drain(std::function<void()> told) {
  connection_.on_drain(std::move(told));
}

}  // namespace hearth::net
