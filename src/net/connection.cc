#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <utility>

#include <boost/asio/error.hpp>

#include "base/error.h"
#include "base/on_failure.h"
#include "net/accept_internal.h"
#include "net/connection_internal.h"
#include "net/refusal_internal.h"
#include "net/websocket_internal.h"
#include "net/words.h"
#include "net/workers.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;

// A body that a handler had no use for is read to its end, to keep the connection, if it is no
// longer than this. A new connection costs a client about as much.
constexpr std::uint64_t kUnwantedBodyBytes = 64 << 10;

// How long a peer may take to see our goodbye.
constexpr Duration kGoodbye = std::chrono::seconds(2);

Refusal too_large(std::uint64_t limit) {
  const Problem problem = too_long(limit);
  return {problem.status, problem.code, problem.message};
}

std::optional<std::uint64_t> content_length(const Headers& headers) {
  const std::string* text = headers.find("Content-Length");
  if (text == nullptr) return std::nullopt;
  const auto length = parse_number(*text);
  if (!length) fail(Code::internal, "a handler set the Content-Length '{}'", *text);
  return length;
}

bool has_no_body(unsigned status) {
  return status < 200 || status == 204 || status == 304;
}

}  // namespace

std::optional<Problem> accept_target(Request& request) {
  if (request.method == "CONNECT") return Problem{501, Code::invalid, "no tunnels here"};
  const auto target = parse_target(request.target);
  if (!target) return Problem{400, Code::invalid, "malformed request target"};
  request.path = target->path;
  request.query = target->query;
  // RFC 9112 section 3.2.2: an absolute target overrules the Host field.
  request.host = target->authority.empty() ? request.headers.value("Host") : target->authority;
  return std::nullopt;
}

Problem too_long(std::uint64_t limit) {
  return {413, Code::exhausted, fmt::format("the body is longer than {} bytes", limit)};
}

Connection::Connection(ByteStream& stream, const Router& router, const Limits& limits,
                       const Timeouts& timeouts)
    : stream_(stream),
      router_(router),
      limits_(limits),
      timeouts_(timeouts),
      reader_(stream, limits) {}

asio::awaitable<void> Connection::serve() {
  bool again = true;
  while (again) again = co_await serve_one();
  if (exchange_.is_lost) {
    stream_.cut();
  } else {
    co_await stream_.finish(kGoodbye);
  }
}

void Connection::drain() {
  draining_ = true;
  if (is_idle_ && !reader_.has_unread()) cut();
  if (exchange_.on_drain) exchange_.on_drain();
}

void Connection::on_drain(std::function<void()> told) {
  if (draining_) return told();
  exchange_.on_drain = std::move(told);
}

void Connection::cut() {
  exchange_.is_lost = true;
  stream_.cut();
}

asio::awaitable<bool> Connection::serve_one() {
  exchange_ = {.read_patience = timeouts_.body};
  is_idle_ = true;
  if (draining_) co_return false;
  const Duration first = std::exchange(is_first_, false) ? timeouts_.head : timeouts_.idle;
  const Outcome outcome = co_await reader_.read_head(HeadKind::request, first, timeouts_.head);
  is_idle_ = false;

  Request request;
  std::optional<Problem> problem;
  if (outcome == Outcome::end || outcome == Outcome::broken) {
    exchange_.is_lost = true;
    co_return false;
  }
  if (outcome == Outcome::timeout && !reader_.has_unread()) co_return false;
  if (outcome == Outcome::timeout) problem = {408, Code::timeout, "the head came too slowly"};
  if (outcome == Outcome::refused) problem = reader_.problem();
  if (!problem) problem = accept_head(request);
  if (problem) {
    exchange_.keep_alive = false;
    co_await answer_problem(*std::move(problem), std::string(), router_.surface(), request);
    co_return false;
  }
  co_await serve_request(request);
  co_return co_await settle();
}

std::optional<Problem> Connection::accept_head(Request& request) {
  Head& head = reader_.head();
  exchange_.minor = head.minor;
  exchange_.keep_alive = head.wants_keep_alive();
  exchange_.is_head_request = head.method == "HEAD";
  request.method = std::move(head.method);
  request.target = std::move(head.target);
  request.headers = std::move(head.headers);
  request.peer = stream_.peer();
  request.peer_certificate = stream_.peer_certificate();
  request.peer_groups = stream_.peer_groups();
  if (auto problem = accept_target(request)) return problem;
  if (const std::string* expect = request.headers.find("Expect")) {
    if (!equal_ignoring_case(*expect, "100-continue")) {
      return Problem{417, Code::invalid, "the only expectation met here is 100-continue"};
    }
    exchange_.owes_continue = head.minor > 0 && head.framing.kind != BodyKind::none;
  }
  return std::nullopt;
}

asio::awaitable<void> Connection::serve_request(Request& request) {
  const Router::Match match = router_.find(request);
  std::optional<Problem> problem = match.problem;
  if (!problem) {
    try {
      const bool is_host_route = match.route->pattern.empty();
      if (!is_host_route && match.surface->guard) match.surface->guard(request);
      exchange_.max_body_bytes = match.route->options.max_body_bytes;
      if (match.route->stream) {
        co_await run_stream(*match.route, request);
      } else {
        co_await run_unary(*match.route, request);
      }
    } catch (...) {
      // A lost connection is why it threw, or at least nobody is left to be told.
      if (!exchange_.is_lost) problem = problem_from_current_exception(request);
    }
  }
  if (problem) {
    co_await answer_problem(*std::move(problem), match.allow, *match.surface, request);
  }
}

asio::awaitable<void> Connection::run_unary(const Router::Route& route, Request& request) {
  if (!exchange_.max_body_bytes) exchange_.max_body_bytes = limits_.body_bytes;
  const auto deadline = std::chrono::steady_clock::now() + timeouts_.whole_body;
  while (true) {
    const Duration left = deadline - std::chrono::steady_clock::now();
    exchange_.read_patience = std::min(timeouts_.body, left);
    const std::string_view piece = co_await read_some();
    if (piece.empty()) break;
    request.body += piece;
  }
  Response response;
  if (route.options.workers != nullptr) {
    auto work = std::bind_front(route.unary, std::cref(request));
    response =
        co_await route.options.workers->run(std::move(work), route.options.owner_of(request));
  } else {
    response = route.unary(request);
  }
  co_await respond(std::move(response));
}

asio::awaitable<void> Connection::run_stream(const Router::Route& route, const Request& request) {
  if (wants_websocket(request)) exchange_.upgrade_headers = request.headers;
  Stream stream(*this);
  co_await route.stream(request, stream);  // a copy: a failure is told about the original
  co_await end_response();
}

asio::awaitable<std::string_view> Connection::read_some() {
  const Framing& framing = reader_.head().framing;
  const auto limit = exchange_.max_body_bytes;
  if (limit && framing.kind == BodyKind::length && framing.length > *limit) {
    exchange_.keep_alive = false;
    throw too_large(*limit);
  }
  if (std::exchange(exchange_.owes_continue, false) && !reader_.has_unread() &&
      exchange_.sending == Sending::nothing) {
    co_await send(gather("HTTP/1.1 100 Continue\r\n\r\n"));
  }
  const MessageReader::Piece piece = co_await reader_.read_piece(exchange_.read_patience);
  if (piece.outcome == Outcome::ok) {
    exchange_.body_bytes += piece.bytes.size();
    if (!limit || exchange_.body_bytes <= *limit) co_return piece.bytes;
  }
  exchange_.keep_alive = false;
  if (piece.outcome == Outcome::ok) throw too_large(*limit);
  if (piece.outcome == Outcome::timeout) {
    throw Refusal(408, Code::timeout, "the body came too slowly");
  }
  if (piece.outcome == Outcome::refused) throw Error(Code::invalid, reader_.problem().message);
  exchange_.is_lost = true;
  fail(Code::unavailable, "the peer left before the end of its request");
}

std::vector<Field> Connection::frame(unsigned status, std::optional<std::uint64_t> length) {
  std::vector<Field> fields;
  if (exchange_.is_head_request || has_no_body(status)) {
    exchange_.sending = Sending::discarded;
    if (has_no_body(status)) length.reset();
  } else if (length) {
    exchange_.sending = Sending::counted;
    exchange_.left_to_send = *length;
  } else if (exchange_.minor > 0) {
    exchange_.sending = Sending::chunked;
    fields.push_back({"Transfer-Encoding", "chunked"});
  } else {
    exchange_.sending = Sending::until_end;
    exchange_.keep_alive = false;
  }
  if (length) fields.push_back({"Content-Length", fmt::format("{}", *length)});
  exchange_.keep_alive = can_keep_alive();
  if (!exchange_.keep_alive) {
    fields.push_back({"Connection", "close"});
  } else if (exchange_.minor == 0) {
    fields.push_back({"Connection", "keep-alive"});
  }
  return fields;
}

bool Connection::can_keep_alive() const {
  const Framing& framing = reader_.head().framing;
  // A client that was never told to continue may or may not send its body: no way to know where
  // the next request would begin.
  const bool is_lost_in_body =
      exchange_.owes_continue || (framing.kind == BodyKind::length && !reader_.is_done() &&
                                  framing.length - exchange_.body_bytes > kUnwantedBodyBytes);
  return exchange_.keep_alive && !draining_ && !is_lost_in_body;
}

std::string Connection::begin_response(const Response& head, std::optional<std::uint64_t> length) {
  if (exchange_.sending != Sending::nothing) fail(Code::internal, "a response has one head");
  OnFailure undo([this] { exchange_.sending = Sending::nothing; });  // there is room for a 500
  std::string text = render_head(head, frame(head.status, length));
  undo.release();
  return text;
}

asio::awaitable<void> Connection::write_head(Response head) {
  const auto length = content_length(head.headers);
  const std::string text = begin_response(head, length);
  co_await send(gather(text));
}

asio::awaitable<void> Connection::write(std::string_view bytes) {
  std::string size_line;
  switch (exchange_.sending) {
    case Sending::nothing:
    case Sending::over:
      fail(Code::internal, "a response's body comes after its head and before its end");
    case Sending::discarded:
      co_return;
    case Sending::counted:
      if (bytes.size() > exchange_.left_to_send) {
        fail(Code::internal, "a handler wrote more than its Content-Length");
      }
      exchange_.left_to_send -= bytes.size();
      co_await send(gather(bytes));
      co_return;
    case Sending::chunked:
      if (bytes.empty()) co_return;  // would be the last chunk
      co_await send(chunk(size_line, bytes));
      co_return;
    case Sending::until_end:
      co_await send(gather(bytes));
      co_return;
  }
}

asio::awaitable<void> Connection::respond(Response response) {
  auto length = std::make_optional<std::uint64_t>(response.body.size());
  if (exchange_.is_head_request && response.body.empty()) {
    length = content_length(response.headers).value_or(0);
  }
  const std::string text = begin_response(response, length);
  const bool has_body = exchange_.sending != Sending::discarded;
  exchange_.sending = Sending::over;
  co_await send(gather(text, has_body ? std::string_view(response.body) : std::string_view()));
}

asio::awaitable<void> Connection::answer_problem(Problem problem, std::string allow,
                                                 const Router::Surface& surface,
                                                 const Request& request) {
  if (exchange_.sending != Sending::nothing) {
    exchange_.is_lost = true;
    co_return;
  }
  Response response = render_problem(surface, problem, request);
  if (!allow.empty()) response.headers.set("Allow", std::move(allow));
  try {
    co_await respond(std::move(response));
  } catch (...) {
    exchange_.is_lost = true;
  }
}

asio::awaitable<void> Connection::end_response() {
  if (exchange_.is_taken_over) co_return;
  if (exchange_.sending == Sending::nothing) fail(Code::internal, "a handler wrote no response");
  const bool is_short = exchange_.sending == Sending::counted && exchange_.left_to_send > 0;
  if (is_short) fail(Code::internal, "a handler wrote less than its Content-Length");
  const Sending sending = std::exchange(exchange_.sending, Sending::over);
  if (sending == Sending::chunked) co_await send(gather(kLastChunk));
}

asio::awaitable<bool> Connection::settle() {
  std::uint64_t unwanted = 0;
  while (exchange_.keep_alive && !exchange_.is_lost && !reader_.is_done()) {
    const MessageReader::Piece piece = co_await reader_.read_piece(timeouts_.body);
    unwanted += piece.bytes.size();
    if (piece.outcome != Outcome::ok || unwanted > kUnwantedBodyBytes) co_return false;
  }
  co_return exchange_.keep_alive && !exchange_.is_lost && !draining_;
}

bool Connection::wants_websocket(const Request& request) {
  return request.method == "GET" && request.headers.has_token("Connection", "upgrade") &&
         request.headers.has_token("Upgrade", "websocket");
}

asio::awaitable<std::unique_ptr<WebSocket>> Connection::upgrade(WebSocketOptions options) {
  if (!wants_websocket()) throw Refusal(426, Code::invalid, "this path speaks WebSocket only");
  if (exchange_.sending != Sending::nothing) fail(Code::internal, "a response has one head");
  WebSocketRequest request{.headers = std::move(*exchange_.upgrade_headers),
                           .unread = reader_.take_unread(),
                           .options = std::move(options),
                           .timeouts = timeouts_};
  check_websocket_request(request);
  exchange_.sending = Sending::over;
  exchange_.is_taken_over = true;
  exchange_.keep_alive = false;
  co_return co_await accept_websocket(stream_, std::move(request));
}

asio::awaitable<ByteStream*> Connection::take_over(Response head) {
  if (exchange_.sending != Sending::nothing) fail(Code::internal, "a response has one head");
  const std::string text = render_upgrade(head);
  exchange_.sending = Sending::over;
  exchange_.is_taken_over = true;
  exchange_.keep_alive = false;
  co_await send(gather(text));
  ahead_.emplace(stream_, reader_.take_unread());
  co_return &*ahead_;
}

asio::awaitable<void> Connection::send(Gather data) {
  const Transfer sent = co_await stream_.write(data, timeouts_.write);
  if (!sent.error) co_return;
  exchange_.is_lost = true;
  if (sent.error == asio::error::timed_out) fail(Code::timeout, "the peer does not read");
  fail(Code::unavailable, "the peer left before the end of its response");
}

}  // namespace hearth::net
