// Beast does the protocol; here it is given a ByteStream to do it on, deadlines, and turns for
// writers.
#include "net/websocket.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "base/error.h"
#include "http/fields.h"
#include "net/ahead_internal.h"
#include "net/message_internal.h"
#include "net/watchdog_internal.h"
#include "net/websocket_internal.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;

constexpr std::size_t kKeyLength = 24;  // 16 bytes in base64

// Beast's idea of a stream, over ours. Operations end by themselves or by cut(); Beast's own
// timeouts stay off.
class Wire {
 public:
  using executor_type = asio::any_io_executor;

  Wire(ByteStream& stream, const WebSocketOptions& options, const Timeouts& timeouts)
      : stream_(stream), idle_(options.idle), write_patience_(timeouts.write) {}

  executor_type get_executor() noexcept { return stream_.executor(); }
  void cut() { stream_.cut(); }

  // Called when a peer has been silent for half of its time.
  void set_on_silence(std::function<asio::awaitable<void>()> f) { on_silence_ = std::move(f); }

  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    asio::mutable_buffer into;
    for (auto at = asio::buffer_sequence_begin(buffers); at != asio::buffer_sequence_end(buffers);
         ++at) {
      if (into.size() == 0) into = *at;
    }
    return start(read(into), std::forward<Token>(token));
  }

  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    Gather data{};
    std::size_t parts = 0;
    for (auto at = asio::buffer_sequence_begin(buffers);
         at != asio::buffer_sequence_end(buffers) && parts < data.size(); ++at) {
      const asio::const_buffer part = *at;
      if (part.size() > 0) data.at(parts++) = part;
    }
    return start(stream_.write(data, write_patience_), std::forward<Token>(token));
  }

 private:
  using Finish = std::function<void(error_code, std::size_t)>;

  template <typename Token>
  auto start(asio::awaitable<Transfer> operation, Token&& token) {
    auto initiate = [executor = get_executor()](auto handler, asio::awaitable<Transfer> begun) {
      const auto slot = asio::get_associated_cancellation_slot(handler);
      // A std::function can be copied, Beast's handlers cannot.
      auto shared = std::make_shared<decltype(handler)>(std::move(handler));
      spawn(executor, slot, std::move(begun),
            [shared](error_code error, std::size_t bytes) { std::move (*shared)(error, bytes); });
    };
    return asio::async_initiate<Token, void(error_code, std::size_t)>(std::move(initiate), token,
                                                                      std::move(operation));
  }

  // Knows nothing of who waits: Beast's handlers are many and large, and a coroutine for each took
  // most of a minute to compile.
  static void spawn(const executor_type& executor, asio::cancellation_slot slot,
                    asio::awaitable<Transfer> operation, Finish finish) {
    auto done = [finish = std::move(finish)](const std::exception_ptr& failure, Transfer result) {
      if (failure) result.error = asio::error::operation_aborted;
      finish(result.error, result.bytes);
    };
    asio::co_spawn(executor, std::move(operation),
                   asio::bind_cancellation_slot(slot, std::move(done)));
  }

  asio::awaitable<Transfer> read(asio::mutable_buffer into) {
    const Transfer got = co_await stream_.read_some(into, idle_ / 2);
    if (got.error != asio::error::timed_out || !on_silence_) co_return got;
    co_await on_silence_();
    co_return co_await stream_.read_some(into, idle_ / 2);
  }

  ByteStream& stream_;
  Duration idle_;
  Duration write_patience_;
  std::function<asio::awaitable<void>()> on_silence_;
};

// What Beast calls when it is done with a connection. Whoever owns the ByteStream finishes it.
template <typename Handler>
void async_teardown(beast::role_type, Wire& wire, Handler&& handler) {
  asio::post(wire.get_executor(), [handler = std::forward<Handler>(handler)]() mutable {
    std::move(handler)(error_code());
  });
}
void beast_close_socket(Wire& wire) {
  wire.cut();
}

[[noreturn]] void throw_failure(const error_code& error) {
  if (error == asio::error::timed_out) fail(Code::timeout, "the WebSocket's peer is silent");
  if (error == websocket::error::message_too_big) {
    fail(Code::exhausted, "the WebSocket's peer sent too long a message");
  }
  if (error.category() == make_error_code(websocket::error::closed).category() &&
      error != websocket::error::closed) {
    fail(Code::invalid, "the WebSocket's peer broke the protocol: {}", error.message());
  }
  fail(Code::unavailable, "the WebSocket's peer left: {}", error.message());
}

// Empty where the client offers none. Nothing where it offers only others.
std::optional<std::string> choose_subprotocol(const Headers& headers,
                                              const std::vector<std::string>& spoken) {
  bool offered_any = false;
  for (const Field& field : headers) {
    if (!equal_ignoring_case(field.name, "Sec-WebSocket-Protocol")) continue;
    std::string_view list = field.value;
    while (!list.empty()) {
      const auto comma = std::min(list.find(','), list.size());
      const std::string_view offered = hearth::http::trim(list.substr(0, comma));
      list.remove_prefix(std::min(comma + 1, list.size()));
      offered_any = true;
      if (std::ranges::find(spoken, offered) != spoken.end()) return std::string(offered);
    }
  }
  if (offered_any && !spoken.empty()) return std::nullopt;
  return std::string();
}

}  // namespace

struct WebSocket::State {
  // `from` is a ByteStream&, or a std::unique_ptr to one.
  template <typename From>
  State(From&& from, std::string unread, const WebSocketOptions& options, const Timeouts& timeouts)
      : stream(std::forward<From>(from), std::move(unread)),
        socket(stream, options, timeouts),
        turn(stream.executor()),
        close_wait(options.close_wait) {
    socket.read_message_max(options.max_message_bytes);
    socket.auto_fragment(false);
    turn.expires_at(std::chrono::steady_clock::time_point::max());
  }

  // A writer's turn, given on even by a coroutine that is cancelled.
  class Turn {
   public:
    explicit Turn(State& state) : state_(state) { state_.is_writing = true; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      state_.is_writing = false;
      state_.turn.cancel_one();
    }

   private:
    State& state_;
  };

  asio::awaitable<void> keep_alive();
  asio::awaitable<error_code> ping();

  AheadStream stream;
  websocket::stream<Wire, /*deflateSupported=*/false> socket;
  std::string subprotocol;
  asio::steady_timer turn;  // never expires; cancelled when it is another writer's turn
  Duration close_wait;
  bool is_writing = false;
  bool is_pinging = false;
  bool is_closed = false;  // by the peer
};

asio::awaitable<error_code> WebSocket::State::ping() {
  if (std::exchange(is_pinging, true)) co_return error_code();
  const auto token = asio::as_tuple(asio::use_awaitable);
  const websocket::ping_data empty;
  const auto [error] = co_await socket.async_ping(empty, token);
  is_pinging = false;
  co_return error;
}

asio::awaitable<void> WebSocket::State::keep_alive() {
  co_await ping();  // a failure shows in the read that goes on
}

WebSocket::WebSocket(std::unique_ptr<State> state) : state_(std::move(state)) {
  state_->socket.next_layer().set_on_silence(std::bind_front(&State::keep_alive, state_.get()));
}

WebSocket::~WebSocket() = default;

asio::awaitable<std::optional<Message>> WebSocket::read() {
  if (state_->is_closed) co_return std::nullopt;
  beast::flat_buffer buffer;
  const auto token = asio::as_tuple(asio::use_awaitable);
  const auto [error, count] = co_await state_->socket.async_read(buffer, token);
  if (error == websocket::error::closed) {
    state_->is_closed = true;
    co_return std::nullopt;
  }
  if (error) throw_failure(error);
  Message message;
  message.kind = state_->socket.got_text() ? MessageKind::text : MessageKind::binary;
  message.data.assign(static_cast<const char*>(buffer.data().data()), count);
  co_return message;
}

asio::awaitable<void> WebSocket::write(std::string_view data, MessageKind kind) {
  const auto token = asio::as_tuple(asio::use_awaitable);
  while (state_->is_writing) co_await state_->turn.async_wait(token);
  const State::Turn turn(*state_);
  state_->socket.text(kind == MessageKind::text);
  const auto [error, count] = co_await state_->socket.async_write(asio::buffer(data), token);
  if (error) throw_failure(error);
}

asio::awaitable<void> WebSocket::ping() {
  const error_code error = co_await state_->ping();
  if (error) throw_failure(error);
}

asio::awaitable<void> WebSocket::close(CloseCode code, std::string_view reason) {
  if (state_->is_closed) co_return;
  // A control frame has 125 bytes, two of them for the code.
  constexpr std::size_t kReasonBytes = 123;
  websocket::close_reason why(static_cast<websocket::close_code>(code));
  const std::string_view most = reason.substr(0, kReasonBytes);
  why.reason.assign(most.data(), most.size());
  Watchdog watchdog(state_->stream.executor());
  const auto outer = co_await asio::this_coro::cancellation_state;
  const auto slot = watchdog.start(state_->close_wait, outer.slot());
  auto token = asio::bind_cancellation_slot(slot, asio::as_tuple(asio::use_awaitable));
  const auto [error] = co_await state_->socket.async_close(why, token);
  // A coroutine that reads has been waiting for the same answer.
  if (watchdog.end(error) == asio::error::timed_out) state_->stream.cut();
  state_->is_closed = true;
}

const std::string& WebSocket::subprotocol() const {
  return state_->subprotocol;
}

std::optional<std::uint16_t> WebSocket::peer_close_code() const {
  const std::uint16_t code = state_->socket.reason().code;
  constexpr std::uint16_t kNoStatus = 1005;
  if (code != 0) return code;
  return state_->is_closed ? std::make_optional(kNoStatus) : std::nullopt;
}

void check_websocket_request(const WebSocketRequest& request) {
  if (request.headers.value("Sec-WebSocket-Version") != "13") {
    fail(Code::invalid, "the only WebSocket version spoken here is 13");
  }
  if (request.headers.value("Sec-WebSocket-Key").size() != kKeyLength) {
    fail(Code::invalid, "a WebSocket handshake needs a key of {} characters", kKeyLength);
  }
  if (!choose_subprotocol(request.headers, request.options.subprotocols)) {
    fail(Code::invalid, "none of the subprotocols '{}' is spoken here",
         request.headers.value("Sec-WebSocket-Protocol"));
  }
}

asio::awaitable<std::unique_ptr<WebSocket>> accept_websocket(ByteStream& stream,
                                                             WebSocketRequest request) {
  auto state = std::make_unique<WebSocket::State>(stream, std::move(request.unread),
                                                  request.options, request.timeouts);
  state->subprotocol =
      choose_subprotocol(request.headers, request.options.subprotocols).value_or("");
  auto decorate = [chosen = state->subprotocol](websocket::response_type& response) {
    response.set(http::field::server, "hearth");
    if (!chosen.empty()) response.set(http::field::sec_websocket_protocol, chosen);
  };
  state->socket.set_option(websocket::stream_base::decorator(decorate));
  // Only what matters, in the form that Beast expects; the rest was checked by then.
  http::request<http::empty_body> handshake(http::verb::get, "/", 11);
  handshake.set(http::field::host, "hearth");
  handshake.set(http::field::connection, "upgrade");
  handshake.set(http::field::upgrade, "websocket");
  handshake.set(http::field::sec_websocket_version, "13");
  const std::string_view key = request.headers.value("Sec-WebSocket-Key");
  handshake.set(http::field::sec_websocket_key, beast::string_view(key.data(), key.size()));
  const auto token = asio::as_tuple(asio::use_awaitable);
  const auto [error] = co_await state->socket.async_accept(handshake, token);
  if (error) throw_failure(error);
  co_return std::make_unique<WebSocket>(std::move(state));
}

asio::awaitable<std::unique_ptr<WebSocket>> connect_websocket(std::unique_ptr<ByteStream> stream,
                                                              Request request,
                                                              WebSocketOptions options,
                                                              Timeouts timeouts) {
  render_head(request, {});  // throws for what Beast would send as it is
  auto state =
      std::make_unique<WebSocket::State>(std::move(stream), std::string(), options, timeouts);
  auto decorate = [&](websocket::request_type& handshake) {
    handshake.set(http::field::user_agent, "hearth");
    for (const Field& field : request.headers) {
      if (!equal_ignoring_case(field.name, "Host")) handshake.insert(field.name, field.value);
    }
    if (options.subprotocols.empty()) return;
    handshake.set(http::field::sec_websocket_protocol,
                  fmt::format("{}", fmt::join(options.subprotocols, ", ")));
  };
  state->socket.set_option(websocket::stream_base::decorator(decorate));
  const std::string host(request.headers.value("Host"));
  websocket::response_type answer;
  const auto token = asio::as_tuple(asio::use_awaitable);
  const auto [error] = co_await state->socket.async_handshake(answer, host, request.target, token);
  if (error == websocket::error::upgrade_declined) {
    fail(code_from_status(answer.result_int()), "the server declined to speak WebSocket: {} '{}'",
         answer.result_int(), answer.body());
  }
  if (error) throw_failure(error);
  const auto chosen = answer[http::field::sec_websocket_protocol];
  state->subprotocol.assign(chosen.data(), chosen.size());
  if (!chosen.empty() &&
      std::ranges::find(options.subprotocols, state->subprotocol) == options.subprotocols.end()) {
    fail(Code::invalid, "the server chose the subprotocol '{}', which was not offered",
         state->subprotocol);
  }
  co_return std::make_unique<WebSocket>(std::move(state));
}

}  // namespace hearth::net
