#include "apiserver/watching.h"

#include <exception>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace hearth::apiserver {
namespace {

namespace asio = boost::asio;
using SteadyTime = std::chrono::steady_clock::time_point;

// About once a minute, and shortly before the end, as client-go expects.
constexpr auto kBookmarkEvery = std::chrono::seconds(60);
constexpr auto kLastBookmark = std::chrono::seconds(2);

// Wakes the coroutine of a connection from the thread that commits.
class Bell : public std::enable_shared_from_this<Bell> {
 public:
  explicit Bell(const asio::any_io_executor& executor) : timer_(executor) {}

  void ring() {
    asio::post(timer_.get_executor(), [self = shared_from_this()] {
      self->rung_ = true;
      self->timer_.cancel();
    });
  }
  asio::awaitable<void> wait_until(SteadyTime time) {
    if (!rung_) {
      timer_.expires_at(time);
      const auto token = asio::as_tuple(asio::use_awaitable);
      co_await timer_.async_wait(token);
    }
    rung_ = false;
  }

 private:
  // Both belong to the connection's thread.
  asio::steady_timer timer_;
  bool rung_ = false;
};

// Until the watch ends by itself, or the server.
asio::awaitable<void> send_events(Front::Watching& watching, Bell& bell, net::Stream& stream) {
  const SteadyTime begin = std::chrono::steady_clock::now();
  const SteadyTime end =
      begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(watching.timeout);
  // A watch too short for the one before its end has none.
  const bool has_bookmarks = watching.bookmarks && end - kLastBookmark > begin;
  SteadyTime next_bookmark = std::min(begin + kBookmarkEvery, end - kLastBookmark);
  while (!stream.is_draining()) {
    const Feed::Piece piece = watching.feed->next();
    if (!piece.lines.empty()) {
      co_await stream.write(piece.lines);
      if (piece.ended) co_return;
      continue;
    }
    const SteadyTime now = std::chrono::steady_clock::now();
    if (now >= end) co_return;
    if (has_bookmarks && now >= next_bookmark) {
      const std::string line = watching.feed->bookmark();
      co_await stream.write(line);
      next_bookmark = now + kBookmarkEvery;
      if (next_bookmark > end && now < end - kLastBookmark) next_bookmark = end - kLastBookmark;
    }
    co_await bell.wait_until(has_bookmarks ? std::min(end, std::max(next_bookmark, now)) : end);
  }
}

// A client that does not read is still there: nothing else would end the wait for its leaving.
asio::awaitable<void> note_failure(asio::awaitable<void> work, std::exception_ptr& failure) {
  try {
    co_await std::move(work);
  } catch (...) {
    failure = std::current_exception();
  }
}

}  // namespace

asio::awaitable<void> serve_watch(Front& front, const Call& call, net::Stream& stream) {
  using namespace asio::experimental::awaitable_operators;
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  const auto bell = std::make_shared<Bell>(executor);
  Front::Watching watching;
  std::optional<net::Response> refusal;
  try {
    watching = front.open_watch(call, [bell] { bell->ring(); });
  } catch (const std::exception& failure) {
    refusal = Front::refuse(failure, call.is_pretty);
  }
  if (refusal) {
    co_await stream.respond(std::move(*refusal));
    co_return;
  }
  stream.on_drain([bell] { bell->ring(); });
  co_await stream.write_head(std::move(watching.head));

  std::exception_ptr failure;
  const auto first = co_await (note_failure(send_events(watching, *bell, stream), failure) ||
                               stream.wait_disconnect());
  if (first.index() == 0 && failure) std::rethrow_exception(failure);
}

}  // namespace hearth::apiserver
