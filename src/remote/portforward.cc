// Port-forward. Over SPDY the client opens two streams for each connection, "error" and "data",
// with the same request id; over WebSocket it names its ports once, and each has two channels.
#include <chrono>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/error.h"
#include "model/status.h"
#include "net/byte_stream.h"
#include "net/stream.h"
#include "net/websocket.h"
#include "remote/negotiate_internal.h"
#include "remote/portforward_internal.h"
#include "remote/spdy_link_internal.h"
#include "remote/target_internal.h"

namespace hearth::remote {

namespace asio = boost::asio;
using namespace boost::asio::experimental::awaitable_operators;

namespace {

constexpr std::string_view kProtocol = "portforward.k8s.io";
constexpr std::string_view kTunnelProtocol = "SPDY/3.1+portforward.k8s.io";
// Each costs a descriptor here and one inside.
constexpr std::size_t kMostConnections = 256;

std::optional<std::uint16_t> parse_port(std::string_view text) {
  const auto number = net::parse_number(text);
  if (!number || *number == 0 || *number > UINT16_MAX) return std::nullopt;
  return static_cast<std::uint16_t>(*number);
}

class StreamPair final : public Outlet {
 public:
  StreamPair(SpdyLink& link, spdy::StreamId data, spdy::StreamId error)
      : link_(link), data_(data), error_(error) {}

  asio::awaitable<void> data(std::string_view bytes) override { return link_.send(data_, bytes); }

  asio::awaitable<void> end(bool is_torn) override {
    co_await link_.send(error_, {}, /*is_end=*/true);
    if (is_torn) {
      co_await link_.reset(data_, spdy::ResetReason::cancel);
    } else {
      co_await link_.send(data_, {}, /*is_end=*/true);
    }
  }

  bool has_half_close() const override { return true; }

  asio::awaitable<void> refuse(std::string message) override {
    co_await link_.send(error_, message);
    co_await link_.reset(data_, spdy::ResetReason::cancel);
    co_await link_.reset(error_, spdy::ResetReason::cancel);
  }

 private:
  SpdyLink& link_;
  spdy::StreamId data_;
  spdy::StreamId error_;
};

class Forwarder {
 public:
  Forwarder(const asio::any_io_executor& executor, SpdyLink& link, Container container,
            Backend& backend)
      : executor_(executor),
        link_(link),
        container_(std::move(container)),
        backend_(backend),
        ended_(executor),
        readers_(executor),
        targets_(executor) {}

  asio::awaitable<void> run();

 private:
  struct Half {
    spdy::StreamId error = 0;
    spdy::StreamId data = 0;
    std::uint16_t port = 0;
  };

  asio::awaitable<void> hear_client();
  asio::awaitable<void> obey(spdy::Event event);
  asio::awaitable<void> open(const spdy::Event& event);
  void connect(const Half& pair);
  asio::awaitable<void> run_target(std::shared_ptr<Target> target, spdy::StreamId data);

  asio::any_io_executor executor_;
  SpdyLink& link_;
  Container container_;
  Backend& backend_;
  std::map<std::string, Half, std::less<>> halves_;  // by request id: one of two streams is there
  std::map<spdy::StreamId, std::shared_ptr<Target>> by_data_;
  Bell ended_;
  bool is_over_ = false;
  Tasks readers_;
  Tasks targets_;
};

asio::awaitable<void> Forwarder::run() {
  co_await outlive_cancellation();
  readers_.start(hear_client());
  while (!is_over_) co_await ended_.wait();
  // Whoever still writes to the client need not wait any longer.
  link_.transport().cut();
  for (const auto& [stream, target] : by_data_) target->cut();
  co_await targets_.wait();
  co_await link_.transport().close(readers_);
}

asio::awaitable<void> Forwarder::hear_client() {
  try {
    while (true) {
      auto event = co_await link_.read();
      if (!event) break;
      co_await obey(*std::move(event));
    }
  } catch (const std::exception&) {
    // Gone, or not speaking our protocol.
  }
  is_over_ = true;
  ended_.ring();
}

asio::awaitable<void> Forwarder::obey(spdy::Event event) {
  if (event.kind == spdy::EventKind::opened) {
    co_await open(event);
    co_return;
  }
  const auto found = by_data_.find(event.stream);
  if (found == by_data_.end()) co_return;
  const std::shared_ptr<Target> target = found->second;
  if (event.kind == spdy::EventKind::reset) {
    target->cut();
  } else if (event.kind == spdy::EventKind::data) {
    target->put(event.bytes);
    if (event.is_end) target->end_input();
    if (target->is_full()) {
      // Nobody reads the connection meanwhile: a client that leaves must be noticed in another way.
      const auto first = co_await (target->wait_room() || link_.transport().wait_gone());
      if (first.index() == 1) fail(Code::unavailable, "the client left");
    }
  }
}

asio::awaitable<void> Forwarder::open(const spdy::Event& event) {
  const std::string_view type = spdy::header(event.headers, "streamtype");
  const auto port = parse_port(spdy::header(event.headers, "port"));
  std::string request(spdy::header(event.headers, "requestid"));
  const bool is_data = type == "data";
  // Clients without request ids open the error stream, then the data stream, and nothing between.
  if (request.empty()) request = fmt::format("stream {}", event.stream - (is_data ? 2 : 0));
  const auto found = halves_.find(request);
  const bool fits =
      found != halves_.end()
          ? found->second.port == port && (is_data ? found->second.data : found->second.error) == 0
          : halves_.size() + by_data_.size() < kMostConnections;
  if (!port || (!is_data && type != "error") || !fits) {
    co_await link_.reset(event.stream, spdy::ResetReason::refused);
    co_return;
  }
  co_await link_.accept(event.stream);
  Half& half = halves_[request];
  half.port = *port;
  (is_data ? half.data : half.error) = event.stream;
  if (half.data == 0 || half.error == 0) co_return;
  const Half pair = half;
  halves_.erase(request);
  connect(pair);
}

void Forwarder::connect(const Half& pair) {
  auto target = std::make_shared<Target>(
      executor_, std::make_unique<StreamPair>(link_, pair.data, pair.error), pair.port);
  by_data_[pair.data] = target;
  targets_.start(run_target(std::move(target), pair.data));
}

asio::awaitable<void> Forwarder::run_target(std::shared_ptr<Target> target, spdy::StreamId data) {
  co_await target->run(container_, backend_);
  by_data_.erase(data);
}

asio::awaitable<void> forward_over_spdy(net::Request request, net::Stream& stream,
                                        Container container, Backend& backend) {
  net::ByteStream* bytes = co_await accept_spdy(request, stream, std::string(kProtocol));
  if (bytes == nullptr) co_return;
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  StreamTransport transport(*bytes);
  SpdyLink link(executor, transport);
  Forwarder forwarder(executor, link, std::move(container), backend);
  co_await forwarder.run();
}

asio::awaitable<void> forward_over_tunnel(net::Stream& stream, Container container,
                                          Backend& backend) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  net::WebSocketOptions options;
  options.subprotocols = {std::string(kTunnelProtocol)};
  const auto socket = co_await stream.upgrade(options);
  TunnelTransport transport(stream, *socket);
  SpdyLink link(executor, transport);
  Forwarder forwarder(executor, link, std::move(container), backend);
  co_await forwarder.run();
}

}  // namespace

asio::awaitable<void> serve_forward(net::Request request, net::Stream& stream, Upgrade upgrade,
                                    std::vector<std::string> ports, Container container,
                                    Backend& backend) {
  if (upgrade == Upgrade::spdy) {
    co_await forward_over_spdy(std::move(request), stream, std::move(container), backend);
    co_return;
  }
  if (offers_subprotocol(request, kTunnelProtocol)) {
    co_await forward_over_tunnel(stream, std::move(container), backend);
    co_return;
  }
  std::vector<std::uint16_t> numbers;
  for (const std::string& text : ports) {
    // "8080,8081" is as good as two parameters.
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      const auto port = parse_port(std::string_view(text).substr(begin, comma - begin));
      if (!port) model::throw_bad_request(fmt::format("invalid port '{}'", text));
      numbers.push_back(*port);
      begin = comma + 1;
    }
  }
  co_await forward_over_channels(std::move(request), stream, std::move(numbers),
                                 std::move(container), backend);
}

}  // namespace hearth::remote
