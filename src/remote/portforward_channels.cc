// Port-forward as the Python client wants it: the ports are named in the query, each is connected
// once, and the i-th has the channels 2i for its data and 2i+1 for what went wrong.
#include <memory>
#include <utility>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/error.h"
#include "model/status.h"
#include "net/stream.h"
#include "net/websocket.h"
#include "remote/portforward_internal.h"
#include "remote/target_internal.h"

namespace hearth::remote {

namespace asio = boost::asio;
using namespace boost::asio::experimental::awaitable_operators;

namespace {

// A channel is one byte.
constexpr std::size_t kMostPorts = 128;

class ChannelPair final : public Outlet {
 public:
  ChannelPair(net::WebSocket& socket, unsigned index) : socket_(socket), data_(2 * index) {}

  // Both channels begin with the port, so that the client can tell that they are what it thinks.
  asio::awaitable<void> announce(std::uint16_t port) {
    const std::string bytes = {static_cast<char>(port & 0xff), static_cast<char>(port >> 8)};
    co_await send(data_, bytes);
    co_await send(data_ + 1, bytes);
  }

  asio::awaitable<void> data(std::string_view bytes) override { return send(data_, bytes); }
  // There is no word for it; when all have ended the connection is closed.
  asio::awaitable<void> end(bool /*is_torn*/) override { co_return; }
  bool has_half_close() const override { return false; }
  asio::awaitable<void> refuse(std::string message) override { co_await send(data_ + 1, message); }

 private:
  asio::awaitable<void> send(unsigned channel, std::string_view bytes) {
    std::string message(1, static_cast<char>(channel));
    message += bytes;
    co_await socket_.write(message, net::MessageKind::binary);
  }

  net::WebSocket& socket_;
  unsigned data_;
};

class ChannelForwarder {
 public:
  ChannelForwarder(const asio::any_io_executor& executor, net::Stream& stream,
                   net::WebSocket& socket)
      : executor_(executor),
        stream_(stream),
        socket_(socket),
        changed_(executor),
        readers_(executor),
        runners_(executor) {}

  asio::awaitable<void> run(const std::vector<std::uint16_t>& ports, const Container& container,
                            Backend& backend) {
    co_await outlive_cancellation();
    try {
      for (unsigned i = 0; i < ports.size(); ++i) {
        auto outlet = std::make_unique<ChannelPair>(socket_, i);
        co_await outlet->announce(ports[i]);
        targets_.push_back(std::make_unique<Target>(executor_, std::move(outlet), ports[i]));
      }
    } catch (const Error&) {
      co_return;  // it left at once
    }
    readers_.start(hear_client());
    running_ = targets_.size();
    for (const auto& target : targets_) runners_.start(run_one(*target, container, backend));
    while (!is_client_gone_ && running_ > 0) co_await changed_.wait();
    for (const auto& target : targets_) target->cut();
    co_await runners_.wait();
    co_await socket_.close(net::CloseCode::normal);
    co_await readers_.wait();
  }

 private:
  asio::awaitable<void> run_one(Target& target, const Container& container, Backend& backend) {
    co_await target.run(container, backend);
    --running_;
    changed_.ring();
  }

  asio::awaitable<void> hear_client() {
    try {
      while (auto message = co_await socket_.read()) co_await pass(std::move(message->data));
    } catch (const std::exception&) {
      // Gone, or not speaking our protocol.
    }
    is_client_gone_ = true;
    changed_.ring();
  }

  asio::awaitable<void> pass(std::string message) {
    if (message.size() < 2) co_return;
    const unsigned channel = static_cast<unsigned char>(message.front());
    if (channel % 2 == 1 || channel / 2 >= targets_.size()) co_return;
    Target& target = *targets_[channel / 2];
    target.put(std::string_view(message).substr(1));
    if (!target.is_full()) co_return;
    const auto first = co_await (target.wait_room() || stream_.wait_disconnect());
    if (first.index() == 1) fail(Code::unavailable, "the client left");
  }

  asio::any_io_executor executor_;
  net::Stream& stream_;
  net::WebSocket& socket_;
  std::vector<std::unique_ptr<Target>> targets_;
  std::size_t running_ = 0;
  bool is_client_gone_ = false;
  Bell changed_;
  Tasks readers_;
  Tasks runners_;
};

}  // namespace

asio::awaitable<void> forward_over_channels(net::Request request, net::Stream& stream,
                                            std::vector<std::uint16_t> ports, Container container,
                                            Backend& backend) {
  if (ports.empty()) model::throw_bad_request("query parameter \"ports\" is required");
  if (ports.size() > kMostPorts) model::throw_bad_request("too many ports");
  net::WebSocketOptions options;
  options.subprotocols = {"v4.channel.k8s.io"};
  expect_common_subprotocol(request, options.subprotocols);
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  const auto socket = co_await stream.upgrade(options);
  ChannelForwarder forwarder(executor, stream, *socket);
  co_await forwarder.run(ports, container, backend);
}

}  // namespace hearth::remote
