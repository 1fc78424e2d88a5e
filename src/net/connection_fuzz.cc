// The HTTP surface: whatever bytes a stranger sends, in whatever pieces, to a connection with
// handlers of every kind. Looks for crashes, for waiting that would never end, and for answers that
// are no HTTP.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>

#include "base/error.h"
#include "base/log.h"
#include "net/connection_internal.h"
#include "net/websocket.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;

// A peer that has said all it will ever say.
class MemoryStream final : public ByteStream {
 public:
  // Hands out `input` in pieces of `piece` bytes, then its end.
  MemoryStream(asio::any_io_executor executor, std::string_view input, std::size_t piece)
      : executor_(std::move(executor)), input_(input), piece_(piece) {}

  asio::any_io_executor executor() override { return executor_; }
  asio::awaitable<Transfer> read_some(asio::mutable_buffer into, Duration) override {
    if (is_cut_) co_return Transfer{asio::error::bad_descriptor, 0};
    if (input_.empty()) co_return Transfer{asio::error::eof, 0};
    const std::string_view some = input_.substr(0, piece_);
    const std::size_t count = asio::buffer_copy(into, asio::buffer(some));
    input_.remove_prefix(count);
    co_return Transfer{{}, count};
  }
  asio::awaitable<Transfer> write(Gather data, Duration) override {
    if (is_cut_) co_return Transfer{asio::error::bad_descriptor, 0};
    for (const asio::const_buffer& part : data) {
      output_.append(static_cast<const char*>(part.data()), part.size());
    }
    co_return Transfer{{}, asio::buffer_size(data)};
  }
  asio::awaitable<void> finish(Duration) override {
    cut();
    co_return;
  }
  asio::awaitable<void> wait_disconnect() override { co_return; }
  bool is_quiet() override { return input_.empty() && !is_cut_; }
  void cut() override { is_cut_ = true; }
  std::string peer() const override { return "memory"; }
  std::string peer_certificate() const override { return {}; }
  std::vector<std::string> peer_groups() const override { return {}; }

  bool is_cut() const { return is_cut_; }
  const std::string& output() const { return output_; }

 private:
  asio::any_io_executor executor_;
  std::string_view input_;
  std::size_t piece_;
  std::string output_;
  bool is_cut_ = false;
};

asio::awaitable<void> echo(Request, Stream& stream) {
  Response head;
  co_await stream.write_head(std::move(head));
  while (true) {
    const std::string_view piece = co_await stream.read_some();
    if (piece.empty()) co_return;
    co_await stream.write(piece);
  }
}

asio::awaitable<void> websocket_echo(Request, Stream& stream) {
  WebSocketOptions options;
  options.subprotocols = {"a", "b"};
  options.max_message_bytes = 1000;
  auto socket = co_await stream.upgrade(std::move(options));
  while (true) {
    const auto message = co_await socket->read();
    if (!message) co_return;
    co_await socket->write(message->data, message->kind);
  }
}

Router make_router() {
  Router router;
  router.add("GET", "/", [](const Request& r) { return text_response(200, r.query); });
  router.add("POST", "/unary", [](const Request& r) { return text_response(200, r.body); });
  router.add("GET", "/{id}/x/{rest...}", [](const Request& r) {
    return text_response(200, r.parameter("id") + r.parameter("rest"));
  });
  router.add("GET", "/fail",
             [](const Request& r) -> Response { fail(Code::conflict, "{}", r.query); });
  // What a handler takes over from a request must not become a header of its own.
  router.add("GET", "/reflect/{x}",
             [](const Request& r) { return Response{200, {{"X", r.parameter("x")}}, {}}; });
  router.add_stream("POST", "/stream", echo);
  router.add_stream("GET", "/socket", websocket_echo);
  return router;
}

void check(bool holds) {
  if (!holds) std::abort();
}

void serve(std::string_view input, std::size_t piece, const Router& router) {
  static const Limits limits{
      .head_bytes = 1024, .fields = 16, .target_bytes = 256, .body_bytes = 512};
  static const Timeouts timeouts;
  asio::io_context io{1};
  MemoryStream stream(io.get_executor(), input, piece);
  Connection connection(stream, router, limits, timeouts);
  bool is_over = false;
  asio::co_spawn(io, connection.serve(), [&](const std::exception_ptr& failure) {
    check(!failure);
    is_over = true;
  });
  io.run();
  check(is_over && stream.is_cut());
  check(stream.output().empty() || stream.output().starts_with("HTTP/1.1 "));
}

}  // namespace
}  // namespace hearth::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool quiet = [] {
    hearth::log::configure(static_cast<hearth::log::Level>(9), hearth::log::Format::text);
    return true;
  }();
  (void)quiet;
  if (size == 0 || size > 8192) return 0;
  static const hearth::net::Router router = hearth::net::make_router();
  // The first byte says how the rest is cut into pieces: all at once, or a few bytes at a time.
  const std::size_t piece = data[0] % 16 == 0 ? size : data[0] % 16;
  hearth::net::serve({reinterpret_cast<const char*>(data) + 1, size - 1}, piece, router);
  return 0;
}
