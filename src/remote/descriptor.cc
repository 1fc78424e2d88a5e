#include <unistd.h>

#include <cerrno>
#include <tuple>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.h"
#include "remote/descriptor_internal.h"

namespace hearth::remote {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;

namespace {

bool is_passing(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

Descriptor::Descriptor(const asio::any_io_executor& executor, linux::Fd fd)
    : descriptor_(executor) {
  if (!fd) return;
  linux::set_nonblocking(fd.get(), true);
  descriptor_.assign(fd.release());
}

std::optional<std::size_t> Descriptor::try_read(std::span<char> into) {
  if (!is_open()) return 0;
  const ssize_t got = ::read(fd(), into.data(), into.size());
  if (got >= 0) return static_cast<std::size_t>(got);
  if (is_passing(errno)) return std::nullopt;
  if (errno == EIO) return 0;
  throw_errno("read what a command wrote");
}

std::size_t Descriptor::try_write(std::string_view bytes) {
  if (!is_open()) fail(Code::unavailable, "nobody reads this any more");
  const ssize_t written = ::write(fd(), bytes.data(), bytes.size());
  if (written >= 0) return static_cast<std::size_t>(written);
  if (is_passing(errno)) return 0;
  throw_errno("write what a command is to read");
}

asio::awaitable<void> Descriptor::wait_readable() {
  co_await descriptor_.async_wait(stream_descriptor::wait_read,
                                  asio::as_tuple(asio::use_awaitable));
}

asio::awaitable<void> Descriptor::wait_writable() {
  co_await descriptor_.async_wait(stream_descriptor::wait_write,
                                  asio::as_tuple(asio::use_awaitable));
}

void Descriptor::wake() {
  boost::system::error_code ignored;
  std::ignore = descriptor_.cancel(ignored);
}

void Descriptor::close() {
  boost::system::error_code ignored;
  std::ignore = descriptor_.close(ignored);
}

}  // namespace hearth::remote
