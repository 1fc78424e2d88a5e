// Exec and attach over SPDY: a stream for each channel, opened by the client, which says in a
// header what it is for.
#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.h"
#include "net/byte_stream.h"
#include "net/stream.h"
#include "remote/command_internal.h"
#include "remote/negotiate_internal.h"
#include "remote/spdy_link_internal.h"

namespace hearth::remote {

namespace asio = boost::asio;

namespace {

constexpr std::string_view kProtocol = "v4.channel.k8s.io";
constexpr Duration kStreamsPatience = std::chrono::seconds(30);
// What may come before the last stream was opened.
constexpr std::size_t kMostEarly = std::size_t{256} << 10;
// A size in JSON has forty characters.
constexpr std::size_t kMostResize = 1024;

constexpr std::string_view kStreamTypes[] = {"stdin", "stdout", "stderr", "error", "resize"};

std::optional<Channel> channel_of(std::string_view type) {
  for (std::size_t i = 0; i < std::size(kStreamTypes); ++i) {
    if (kStreamTypes[i] == type) return static_cast<Channel>(i);
  }
  return std::nullopt;
}

class SpdyWire final : public CommandWire {
 public:
  SpdyWire(SpdyLink& link, const Streams& streams) : link_(link) {
    wanted(Channel::status) = true;
    wanted(Channel::input) = streams.input;
    wanted(Channel::output) = streams.output;
    wanted(Channel::error) = streams.error;
    wanted(Channel::resize) = streams.terminal;
  }

  // Until the client has opened all that belong to its request. False when it left.
  asio::awaitable<bool> gather_streams();

  asio::awaitable<std::optional<ClientWord>> read() override;
  asio::awaitable<void> write(Channel channel, std::string_view bytes) override {
    const spdy::StreamId stream = id(channel);
    if (stream != 0) co_await link_.send(stream, bytes);
  }
  asio::awaitable<void> conclude(const Verdict& verdict) override;
  asio::awaitable<void> close(Tasks& tasks) override { return link_.transport().close(tasks); }
  asio::awaitable<void> wait_gone() override { return link_.transport().wait_gone(); }

 private:
  bool& wanted(Channel channel) { return wanted_.at(static_cast<std::size_t>(channel)); }
  spdy::StreamId& id(Channel channel) { return ids_.at(static_cast<std::size_t>(channel)); }
  bool is_complete() const;
  asio::awaitable<void> open(const spdy::Event& event);
  // Appends what it means for the command to words_.
  void understand(spdy::Event event);
  void understand_input(spdy::Event event);

  SpdyLink& link_;
  std::array<bool, 5> wanted_{};
  std::array<spdy::StreamId, 5> ids_{};
  std::deque<ClientWord> words_;  // not yet read
  std::string resize_;            // what is there of the next size
};

bool SpdyWire::is_complete() const {
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (wanted_.at(i) && ids_.at(i) == 0) return false;
  }
  return true;
}

asio::awaitable<void> SpdyWire::open(const spdy::Event& event) {
  const auto channel = channel_of(spdy::header(event.headers, "streamtype"));
  if (!channel || !wanted(*channel) || id(*channel) != 0) {
    co_await link_.reset(event.stream, spdy::ResetReason::refused);
    co_return;
  }
  id(*channel) = event.stream;
  co_await link_.accept(event.stream);
}

asio::awaitable<bool> SpdyWire::gather_streams() {
  std::size_t early_bytes = 0;
  while (!is_complete()) {
    auto event = co_await link_.read();
    if (!event) co_return false;
    if (event->kind == spdy::EventKind::opened) co_await open(*event);
    early_bytes += 1 + event->bytes.size();
    if (early_bytes > kMostEarly) fail(Code::exhausted, "the client says too much too early");
    understand(*std::move(event));
  }
  co_return true;
}

void SpdyWire::understand_input(spdy::Event event) {
  using Kind = ClientWord::Kind;
  if (!event.bytes.empty()) {
    words_.push_back({.kind = Kind::input, .bytes = std::move(event.bytes), .size = {}});
  }
  if (event.is_end || event.kind == spdy::EventKind::reset) {
    words_.push_back({.kind = Kind::input_end, .bytes = {}, .size = {}});
  }
}

void SpdyWire::understand(spdy::Event event) {
  if (event.kind == spdy::EventKind::goaway || event.stream == 0) return;
  if (event.stream == id(Channel::input)) return understand_input(std::move(event));
  if (event.stream != id(Channel::resize)) return;
  resize_ += event.bytes;
  if (resize_.size() > kMostResize) resize_.clear();
  const std::size_t end = resize_.rfind('}');
  if (end == std::string::npos) return;
  // The last one counts.
  const std::size_t begin = std::min(resize_.rfind('{', end), end);
  const auto size = parse_window_size(std::string_view(resize_).substr(begin, end + 1 - begin));
  resize_.erase(0, end + 1);
  if (size) words_.push_back({.kind = ClientWord::Kind::resize, .bytes = {}, .size = *size});
}

asio::awaitable<std::optional<ClientWord>> SpdyWire::read() {
  while (words_.empty()) {
    auto event = co_await link_.read();
    if (!event) co_return std::nullopt;
    if (event->kind == spdy::EventKind::opened) {
      co_await link_.reset(event->stream, spdy::ResetReason::refused);
    } else {
      understand(*std::move(event));
    }
  }
  ClientWord word = std::move(words_.front());
  words_.pop_front();
  co_return word;
}

asio::awaitable<void> SpdyWire::conclude(const Verdict& verdict) {
  co_await write(Channel::status, status_text(verdict));
  for (const spdy::StreamId stream : ids_) {
    if (stream != 0) co_await link_.send(stream, {}, /*is_end=*/true);
  }
  co_await link_.say_goodbye();
}

struct Patience {
  asio::steady_timer timer;
  bool is_over = false;  // nobody waits any more
};

// Cuts the connection of a client that does not get on with it.
asio::awaitable<void> lose_patience(Patience& patience, SpdyTransport& transport) {
  if (patience.is_over) co_return;
  co_await patience.timer.async_wait(asio::as_tuple(asio::use_awaitable));
  if (!patience.is_over) transport.cut();
}

asio::awaitable<bool> gather_in_time(SpdyWire& wire, SpdyTransport& transport,
                                     const asio::any_io_executor& executor) {
  co_await outlive_cancellation();
  Tasks tasks(executor);
  Patience patience{.timer = asio::steady_timer(executor, kStreamsPatience)};
  tasks.start(lose_patience(patience, transport));
  bool is_there = false;
  try {
    is_there = co_await wire.gather_streams();
  } catch (const Error&) {
    // Not a client of ours.
  }
  patience.is_over = true;
  patience.timer.cancel();
  co_await tasks.wait();
  co_return is_there;
}

}  // namespace

asio::awaitable<void> serve_command_spdy(net::Request request, net::Stream& stream,
                                         CommandPlan plan, Backend& backend) {
  net::ByteStream* bytes = co_await accept_spdy(request, stream, std::string(kProtocol));
  if (bytes == nullptr) co_return;
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  StreamTransport transport(*bytes);
  SpdyLink link(executor, transport);
  SpdyWire wire(link, plan.streams);
  if (co_await gather_in_time(wire, transport, executor)) {
    co_await converse(wire, std::move(plan), backend);
  }
}

}  // namespace hearth::remote
