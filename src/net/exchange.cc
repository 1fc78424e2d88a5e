// The coroutine client: connections, their pool, and what happens on one of them.
#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/error.hpp>

#include "base/error.h"
#include "net/ahead_internal.h"
#include "net/client.h"
#include "net/message_internal.h"
#include "net/websocket_internal.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;
using TimePoint = std::chrono::steady_clock::time_point;

// A connection and what was read ahead on it.
struct Link {
  Link(std::unique_ptr<ByteStream> connected, const ClientOptions& options)
      : limits(options.limits), stream(std::move(connected)), reader(*stream, limits) {}

  Limits limits;
  std::unique_ptr<ByteStream> stream;
  MessageReader reader;
  bool is_reused = false;
};

struct Pool {
  // The connection that was used last, if any is still good.
  std::unique_ptr<Link> take() {
    while (!idle.empty()) {
      auto link = std::move(idle.back());
      idle.pop_back();
      if (link->reader.has_unread() || !link->stream->is_quiet()) continue;
      link->is_reused = true;
      return link;
    }
    return nullptr;
  }
  void give(std::unique_ptr<Link> link) {
    if (idle.size() < most) idle.push_back(std::move(link));
  }

  std::size_t most = 0;
  std::vector<std::unique_ptr<Link>> idle;
};

Duration until(TimePoint deadline) {
  return std::max<Duration>(deadline - std::chrono::steady_clock::now(), Duration::zero());
}

// RFC 9110 section 9.2.2.
bool is_idempotent(std::string_view method) {
  constexpr std::array<std::string_view, 5> kMethods = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"};
  return std::ranges::find(kMethods, method) != kMethods.end();
}

void complete_headers(Request& request, const Endpoint& endpoint) {
  if (request.headers.find("Host") == nullptr) {
    const std::uint16_t usual = endpoint.tls ? 443 : 80;
    const bool is_v6 = endpoint.host.find(':') != std::string::npos;
    std::string host = is_v6 ? fmt::format("[{}]", endpoint.host) : endpoint.host;
    if (endpoint.port != usual) host += fmt::format(":{}", endpoint.port);
    request.headers.add("Host", endpoint.unix_path.empty() ? std::move(host) : "localhost");
  }
  if (request.headers.find("User-Agent") == nullptr) request.headers.add("User-Agent", "hearth");
}

}  // namespace

struct Exchange::State {
  // How the request's body goes out.
  enum class Sending { counted, chunked, over };

  asio::awaitable<void> begin(Request& request, bool streams_body);
  asio::awaitable<std::optional<Response>> try_fetch(Exchange& exchange, Request& request,
                                                     Duration patience, bool is_last);
  asio::awaitable<void> send(Gather data);

  std::unique_ptr<Link> link;
  std::weak_ptr<Pool> pool;
  std::string where;  // the endpoint, for messages
  Timeouts timeouts;
  HeadKind kind = HeadKind::response;
  Sending sending = Sending::over;
  std::uint64_t left_to_send = 0;
  bool got_head = false;
  bool keep_alive = false;
  bool is_broken = false;
};

asio::awaitable<void> Exchange::State::begin(Request& request, bool streams_body) {
  kind = request.method == "HEAD" ? HeadKind::response_to_head : HeadKind::response;
  std::vector<Field> framing;
  const bool has_body = !request.body.empty() || request.method == "POST" ||
                        request.method == "PUT" || request.method == "PATCH";
  if (const std::string* length = request.headers.find("Content-Length"); streams_body && length) {
    const auto stated = parse_number(*length);
    if (!stated) fail(Code::invalid, "a request with the Content-Length '{}'", *length);
    left_to_send = *stated;
    framing.push_back({"Content-Length", fmt::format("{}", left_to_send)});
    sending = left_to_send > 0 ? Sending::counted : Sending::over;
  } else if (streams_body) {
    framing.push_back({"Transfer-Encoding", "chunked"});
    sending = Sending::chunked;
  } else if (has_body) {
    framing.push_back({"Content-Length", fmt::format("{}", request.body.size())});
  }
  // A proxy must be able to ask for an upgrade.
  if (request.headers.has_token("Connection", "upgrade")) {
    framing.push_back({"Connection", "Upgrade"});
  }
  const std::string head = render_head(request, framing);
  co_await send(gather(head, request.body));
}

// Sends the request and reads the head of the answer. Nothing where a kept connection turned out
// to be dead and this was not the last try.
asio::awaitable<std::optional<Response>> Exchange::State::try_fetch(Exchange& exchange,
                                                                    Request& request,
                                                                    Duration patience,
                                                                    bool is_last) {
  const TimePoint deadline = std::chrono::steady_clock::now() + patience;
  std::exception_ptr failure;
  try {
    co_await begin(request, /*streams_body=*/false);
  } catch (const Error&) {
    if (!is_broken) throw;               // nothing was sent
    failure = std::current_exception();  // the server may have said why, before it stopped reading
  }
  try {
    co_return co_await exchange.read_head(until(deadline));
  } catch (const Error& error) {
    const bool is_dead = error.code() == Code::unavailable;
    if (is_dead && !is_last) co_return std::nullopt;
    if (!failure) throw;
  }
  std::rethrow_exception(failure);
}

asio::awaitable<void> Exchange::State::send(Gather data) {
  const Transfer sent = co_await link->stream->write(data, timeouts.write);
  if (!sent.error) co_return;
  is_broken = true;
  if (sent.error == asio::error::timed_out) fail(Code::timeout, "{} does not read", where);
  fail(Code::unavailable, "send to {}: {}", where, sent.error.message());
}

Exchange::Exchange(std::unique_ptr<State> state) : state_(std::move(state)) {}

Exchange::~Exchange() {
  const bool is_reusable = state_->link && state_->got_head && state_->keep_alive &&
                           !state_->is_broken && state_->sending == State::Sending::over &&
                           state_->link->reader.is_done();
  const auto pool = state_->pool.lock();
  if (is_reusable && pool) pool->give(std::move(state_->link));
}

asio::awaitable<void> Exchange::write(std::string_view bytes) {
  std::string size_line;
  if (state_->sending == State::Sending::over || bytes.empty()) co_return;
  if (state_->sending == State::Sending::chunked) {
    co_await state_->send(chunk(size_line, bytes));
    co_return;
  }
  if (bytes.size() > state_->left_to_send) fail(Code::internal, "more than the Content-Length");
  state_->left_to_send -= bytes.size();
  if (state_->left_to_send == 0) state_->sending = State::Sending::over;
  co_await state_->send(gather(bytes));
}

asio::awaitable<void> Exchange::end_request() {
  const auto sending = std::exchange(state_->sending, State::Sending::over);
  if (sending == State::Sending::counted) {
    state_->is_broken = true;
    fail(Code::internal, "less than the Content-Length");
  }
  if (sending == State::Sending::chunked) co_await state_->send(gather(kLastChunk));
}

asio::awaitable<Response> Exchange::read_head(Duration patience) {
  const TimePoint deadline = std::chrono::steady_clock::now() + patience;
  MessageReader& reader = state_->link->reader;
  while (true) {
    const Outcome outcome =
        co_await reader.read_head(state_->kind, until(deadline), until(deadline));
    if (outcome != Outcome::ok) state_->is_broken = true;
    if (outcome == Outcome::timeout) fail(Code::timeout, "no answer from {}", state_->where);
    if (outcome == Outcome::refused) {
      fail(Code::invalid, "bad answer from {}: {}", state_->where, reader.problem().message);
    }
    if (outcome != Outcome::ok) {
      fail(Code::unavailable, "{} closed the connection without an answer", state_->where);
    }
    const bool is_interim = reader.head().status < 200 && reader.head().status != 101;
    if (!is_interim) break;
  }
  state_->got_head = true;
  state_->keep_alive = reader.head().wants_keep_alive() && reader.head().status != 101 &&
                       reader.head().framing.kind != BodyKind::until_end;
  Response response;
  response.status = reader.head().status;
  response.headers = reader.head().headers;
  co_return response;
}

asio::awaitable<std::string_view> Exchange::read_some(Duration patience) {
  const MessageReader::Piece piece = co_await state_->link->reader.read_piece(patience);
  if (piece.outcome == Outcome::ok) co_return piece.bytes;
  if (piece.outcome == Outcome::timeout) fail(Code::timeout, "{} is silent", state_->where);
  state_->is_broken = true;
  if (piece.outcome == Outcome::refused) {
    fail(Code::invalid, "bad answer from {}: {}", state_->where,
         state_->link->reader.problem().message);
  }
  fail(Code::unavailable, "{} closed the connection in the middle of an answer", state_->where);
}

std::unique_ptr<ByteStream> Exchange::take_over() {
  const auto link = std::move(state_->link);
  return std::make_unique<AheadStream>(std::move(link->stream), link->reader.take_unread());
}

asio::awaitable<void> Exchange::wait_disconnect() {
  return state_->link->stream->wait_disconnect();
}

struct AsyncClient::State {
  Endpoint endpoint;
  ClientOptions options;
  std::shared_ptr<Pool> pool = std::make_shared<Pool>();

  asio::awaitable<std::unique_ptr<Exchange::State>> prepare(Duration timeout, bool may_reuse);
};

asio::awaitable<std::unique_ptr<Exchange::State>> AsyncClient::State::prepare(Duration timeout,
                                                                              bool may_reuse) {
  auto exchange = std::make_unique<Exchange::State>();
  exchange->where = endpoint.text();
  exchange->timeouts = options.timeouts;
  exchange->timeouts.write = std::min(timeout, options.timeouts.write);
  exchange->pool = pool;
  if (may_reuse) exchange->link = pool->take();
  if (!exchange->link) {
    auto stream = co_await connect(endpoint, timeout);
    exchange->link = std::make_unique<Link>(std::move(stream), options);
  }
  co_return exchange;
}

AsyncClient::AsyncClient(Endpoint endpoint, ClientOptions options)
    : state_(std::make_unique<State>()) {
  state_->endpoint = std::move(endpoint);
  state_->options = options;
  state_->pool->most = options.idle_connections;
}

AsyncClient::~AsyncClient() = default;

asio::awaitable<std::unique_ptr<Exchange>> AsyncClient::open(Request request, OpenOptions options) {
  complete_headers(request, state_->endpoint);
  // A request whose body is gone once it was sent cannot be sent again.
  const bool may_reuse = !options.streams_body && is_idempotent(request.method);
  auto prepared = co_await state_->prepare(options.timeout, may_reuse);
  auto exchange = std::make_unique<Exchange>(std::move(prepared));
  co_await exchange->state_->begin(request, options.streams_body);
  co_return exchange;
}

asio::awaitable<Response> AsyncClient::fetch(Request request, FetchOptions options) {
  std::string body;
  BodyReceiver keep = [&body](const Response&, std::string_view piece) { body += piece; };
  Response response = co_await fetch_into(std::move(request), std::move(keep), options);
  response.body = std::move(body);
  co_return response;
}

asio::awaitable<Response> AsyncClient::fetch_into(Request request, BodyReceiver receiver,
                                                  FetchOptions options) {
  complete_headers(request, state_->endpoint);
  const TimePoint deadline = std::chrono::steady_clock::now() + options.timeout;
  const auto patience = [&] { return std::min(until(deadline), options.silence); };
  const auto head_patience = [&] { return std::min(patience(), options.head); };
  bool is_last = false;
  while (true) {
    auto prepared = co_await state_->prepare(head_patience(), !is_last);
    is_last = is_last || !prepared->link->is_reused || !is_idempotent(request.method);
    Exchange exchange(std::move(prepared));
    auto response =
        co_await exchange.state_->try_fetch(exchange, request, head_patience(), is_last);
    is_last = true;
    if (!response) continue;
    if (options.on_head) options.on_head(*response);
    std::uint64_t received = 0;
    while (true) {
      const std::string_view piece = co_await exchange.read_some(patience());
      if (piece.empty()) co_return *std::move(response);
      if (piece.size() > options.max_body_bytes - received) {
        fail(Code::exhausted, "{} answers with more than {} bytes", exchange.state_->where,
             options.max_body_bytes);
      }
      received += piece.size();
      receiver(*response, piece);
    }
  }
}

asio::awaitable<std::unique_ptr<WebSocket>> AsyncClient::open_websocket(Request request,
                                                                        WebSocketOptions options) {
  complete_headers(request, state_->endpoint);
  const Timeouts& timeouts = state_->options.timeouts;
  auto stream = co_await connect(state_->endpoint, timeouts.handshake);
  co_return co_await connect_websocket(std::move(stream), std::move(request), std::move(options),
                                       timeouts);
}

}  // namespace hearth::net
