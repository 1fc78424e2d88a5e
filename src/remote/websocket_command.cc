// Exec and attach over WebSocket: the first byte of each message says which channel it is for.
#include <array>
#include <utility>

#include "base/base64.h"
#include "base/error.h"
#include "net/stream.h"
#include "net/websocket.h"
#include "remote/command_internal.h"
#include "remote/negotiate_internal.h"

namespace hearth::remote {

namespace asio = boost::asio;

namespace {

// v5 only: "the channel that follows is over".
constexpr char kCloseChannel = static_cast<char>(0xff);
constexpr std::string_view kV5 = "v5.channel.k8s.io";
constexpr std::string_view kV4 = "v4.channel.k8s.io";
constexpr std::string_view kV4Base64 = "v4.base64.channel.k8s.io";
constexpr std::string_view kV1 = "channel.k8s.io";
constexpr std::string_view kV1Base64 = "base64.channel.k8s.io";

class WebSocketWire final : public CommandWire {
 public:
  WebSocketWire(net::Stream& stream, net::WebSocket& socket)
      : stream_(stream),
        socket_(socket),
        has_close_(socket.subprotocol() == kV5),
        has_status_(has_close_ || socket.subprotocol() == kV4 || socket.subprotocol() == kV4Base64),
        is_base64_(socket.subprotocol() == kV4Base64 || socket.subprotocol() == kV1Base64) {}

  asio::awaitable<std::optional<ClientWord>> read() override {
    auto message = co_await socket_.read();
    if (!message) co_return std::nullopt;
    co_return understand(std::move(message->data));
  }

  asio::awaitable<void> write(Channel channel, std::string_view bytes) override {
    std::string message;
    message.reserve(1 + bytes.size());
    if (is_base64_) {
      message += static_cast<char>('0' + static_cast<char>(channel));
      append_base64(message, bytes);
      co_await socket_.write(message, net::MessageKind::text);
      co_return;
    }
    message += static_cast<char>(channel);
    message += bytes;
    co_await socket_.write(message, net::MessageKind::binary);
  }

  asio::awaitable<void> conclude(const Verdict& verdict) override {
    if (has_status_) {
      co_await write(Channel::status, status_text(verdict));
      co_return;
    }
    // The elders know failures as text, and success as silence.
    std::string text = verdict.failure;
    if (text.empty() && verdict.exit_code != 0) {
      text = fmt::format("command terminated with exit code {}", verdict.exit_code);
    }
    if (!text.empty()) co_await write(Channel::status, text);
  }

  asio::awaitable<void> close(Tasks& tasks) override {
    co_await socket_.close(net::CloseCode::normal);
    co_await tasks.wait();
  }

  asio::awaitable<void> wait_gone() override { return stream_.wait_disconnect(); }

 private:
  ClientWord understand(std::string message) const {
    using Kind = ClientWord::Kind;
    if (message.empty()) return {};
    if (has_close_ && message.front() == kCloseChannel) {
      const bool is_input = message.size() == 2 && message[1] == static_cast<char>(Channel::input);
      return {.kind = is_input ? Kind::input_end : Kind::nothing, .bytes = {}, .size = {}};
    }
    const char first = is_base64_ ? static_cast<char>(message.front() - '0') : message.front();
    message.erase(0, 1);
    if (is_base64_) {
      auto bytes = base64_decode(message);
      if (!bytes) fail(Code::invalid, "the message is not base64");
      message = *std::move(bytes);
    }
    if (first == static_cast<char>(Channel::input)) {
      return {.kind = Kind::input, .bytes = std::move(message), .size = {}};
    }
    if (first != static_cast<char>(Channel::resize)) return {};
    const auto size = parse_window_size(message);
    if (!size) return {};
    return {.kind = Kind::resize, .bytes = {}, .size = *size};
  }

  net::Stream& stream_;
  net::WebSocket& socket_;
  bool has_close_;
  bool has_status_;
  bool is_base64_;
};

}  // namespace

asio::awaitable<void> serve_command_websocket(net::Request request, net::Stream& stream,
                                              CommandPlan plan, Backend& backend) {
  net::WebSocketOptions options;
  for (const std::string_view each : {kV5, kV4, kV1, kV4Base64, kV1Base64}) {
    options.subprotocols.emplace_back(each);
  }
  expect_common_subprotocol(request, options.subprotocols);
  const auto socket = co_await stream.upgrade(options);
  WebSocketWire wire(stream, *socket);
  co_await converse(wire, std::move(plan), backend);
}

}  // namespace hearth::remote
