#include <sys/socket.h>

#include <array>
#include <utility>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "base/error.h"
#include "remote/run_internal.h"
#include "remote/target_internal.h"

namespace hearth::remote {

namespace asio = boost::asio;
using namespace boost::asio::experimental::awaitable_operators;

namespace {

constexpr std::size_t kPiece = std::size_t{32} << 10;
// What is kept for a target that does not read, before all that share its connection have to wait.
constexpr std::size_t kMostPending = std::size_t{256} << 10;

}  // namespace

Target::Target(const asio::any_io_executor& executor, std::unique_ptr<Outlet> outlet,
               std::uint16_t port)
    : executor_(executor),
      outlet_(std::move(outlet)),
      port_(port),
      socket_(executor, {}),
      changed_(executor) {}

asio::awaitable<void> Target::run(const Container& container, Backend& backend) {
  co_await outlive_cancellation();
  std::string failure;
  try {
    socket_ = Descriptor(executor_, co_await run_blocking(backend, [&] {
                           return backend.connect(container, port_);
                         }));
  } catch (const Error& error) {
    failure = fmt::format("error forwarding port {} to pod {}, uid {}: {}", port_, container.pod,
                          container.pod_uid, error.what());
  }
  try {
    if (is_cut_) {
      // Nobody is interested any more.
    } else if (!failure.empty()) {
      co_await outlet_->refuse(std::move(failure));
    } else {
      co_await relay();
    }
  } catch (const std::exception&) {
    // The client has left, and this ends with it.
  }
  cut();
}

asio::awaitable<void> Target::relay() {
  co_await (pass_to_client() && pass_to_target());
}

asio::awaitable<void> Target::pass_to_client() {
  std::array<char, kPiece> piece;
  bool is_torn = false;
  while (!is_cut_) {
    try {
      const auto got = socket_.try_read(piece);
      if (got == 0U) break;
      if (got) {
        co_await outlet_->data({piece.data(), *got});
        continue;
      }
    } catch (const Error&) {
      is_torn = true;
      break;
    }
    co_await socket_.wait_readable();
  }
  co_await outlet_->end(is_torn);
  if (is_torn || !outlet_->has_half_close()) cut();
}

asio::awaitable<void> Target::pass_to_target() {
  while (!is_cut_) {
    if (pending_.empty()) {
      if (input_ended_) break;
      co_await changed_.wait();
      continue;
    }
    std::size_t written = 0;
    try {
      written = socket_.try_write(pending_);
    } catch (const Error&) {
      // It reads no more, but may still speak.
      input_ended_ = true;
      pending_.clear();
    }
    pending_.erase(0, written);
    changed_.ring();
    if (written == 0 && !pending_.empty()) co_await socket_.wait_writable();
  }
  if (socket_.is_open()) ::shutdown(socket_.fd(), SHUT_WR);
}

void Target::put(std::string_view bytes) {
  if (input_ended_ || is_cut_) return;
  pending_ += bytes;
  changed_.ring();
}

bool Target::is_full() const {
  return pending_.size() > kMostPending && !is_cut_;
}

asio::awaitable<void> Target::wait_room() {
  while (is_full()) co_await changed_.wait();
}

void Target::end_input() {
  input_ended_ = true;
  changed_.ring();
}

void Target::cut() {
  is_cut_ = true;
  socket_.close();
  changed_.ring();
}

}  // namespace hearth::remote
