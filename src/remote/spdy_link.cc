#include <array>
#include <chrono>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include "base/error.h"
#include "net/byte_stream.h"
#include "net/stream.h"
#include "net/websocket.h"
#include "remote/spdy_link_internal.h"

namespace hearth::remote {

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;
// A client that said nothing for so long is asked whether it is there. Those of today ask first,
// every five seconds; older ones are silent for hours, but all of them answer.
constexpr Duration kSilence = 30s;
constexpr int kMostSilences = 3;
// For each step forward. A client may stop reading for as long as its user looks at a pager.
constexpr Duration kWritePatience = 1h;
constexpr Duration kGoodbye = 2s;

}  // namespace

asio::awaitable<SpdyTransport::Arrival> StreamTransport::read() {
  std::string bytes(kPiece, '\0');
  const net::Transfer got = co_await stream_.read_some(asio::buffer(bytes), kSilence);
  if (got.error == asio::error::timed_out) co_return Arrival{Outcome::silence, {}};
  if (got.error) co_return Arrival{Outcome::end, {}};
  bytes.resize(got.bytes);
  co_return Arrival{Outcome::bytes, std::move(bytes)};
}

asio::awaitable<void> StreamTransport::write(std::string_view head, std::string_view bytes) {
  const net::Gather data = {asio::buffer(head), asio::buffer(bytes), asio::const_buffer()};
  const net::Transfer sent = co_await stream_.write(data, kWritePatience);
  if (sent.error) fail(Code::unavailable, "the client left: {}", sent.error.message());
}

asio::awaitable<void> StreamTransport::close(Tasks& tasks) {
  tasks.cancel();
  co_await tasks.wait();
  co_await stream_.finish(kGoodbye);
}

asio::awaitable<void> StreamTransport::wait_gone() {
  return stream_.wait_disconnect();
}

void StreamTransport::cut() {
  stream_.cut();
}

asio::awaitable<SpdyTransport::Arrival> TunnelTransport::read() {
  auto message = co_await socket_.read();
  if (!message) co_return Arrival{Outcome::end, {}};
  co_return Arrival{Outcome::bytes, std::move(message->data)};
}

asio::awaitable<void> TunnelTransport::write(std::string_view head, std::string_view bytes) {
  std::string message(head);
  message += bytes;
  co_await socket_.write(message, net::MessageKind::binary);
}

asio::awaitable<void> TunnelTransport::close(Tasks& tasks) {
  co_await socket_.close(net::CloseCode::normal);
  co_await tasks.wait();
}

asio::awaitable<void> TunnelTransport::wait_gone() {
  return stream_.wait_disconnect();
}

asio::awaitable<std::optional<spdy::Event>> SpdyLink::read() {
  int silences = 0;
  while (true) {
    while (auto event = decoder_.next()) {
      if (event->kind == spdy::EventKind::opened) last_opened_ = event->stream;
      if (event->kind != spdy::EventKind::ping) co_return event;
      // An answer to ours means nothing more than that somebody is there.
      if (event->number % 2 == 1) co_await write(spdy::Encoder::ping(event->number));
    }
    SpdyTransport::Arrival arrival = co_await transport_.read();
    switch (arrival.outcome) {
      case SpdyTransport::Outcome::end:
        co_return std::nullopt;
      case SpdyTransport::Outcome::bytes:
        silences = 0;
        decoder_.feed(arrival.bytes);
        break;
      case SpdyTransport::Outcome::silence:
        if (++silences >= kMostSilences) fail(Code::timeout, "the client is silent");
        co_await write(spdy::Encoder::ping(std::exchange(next_ping_, next_ping_ + 2)));
        break;
    }
  }
}

asio::awaitable<void> SpdyLink::write(std::string head, std::string_view bytes) {
  while (is_writing_) co_await turn_.wait();
  is_writing_ = true;
  try {
    co_await transport_.write(head, bytes);
  } catch (...) {
    is_writing_ = false;
    turn_.ring();
    throw;
  }
  is_writing_ = false;
  turn_.ring();
}

asio::awaitable<void> SpdyLink::accept(spdy::StreamId stream) {
  return write(encoder_.accept(stream));
}

asio::awaitable<void> SpdyLink::send(spdy::StreamId stream, std::string_view bytes, bool is_end) {
  return write(spdy::Encoder::data_head(stream, bytes.size(), is_end), bytes);
}

asio::awaitable<void> SpdyLink::reset(spdy::StreamId stream, spdy::ResetReason reason) {
  return write(spdy::Encoder::reset(stream, reason));
}

asio::awaitable<void> SpdyLink::say_goodbye() {
  return write(spdy::Encoder::goaway(last_opened_));
}

}  // namespace hearth::remote
