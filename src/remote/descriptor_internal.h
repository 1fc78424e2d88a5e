// A pipe, terminal or socket of a command, for coroutines.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "linux/fd.h"

namespace hearth::remote {

class Descriptor {
 public:
  // None for an empty `fd`.
  Descriptor(const boost::asio::any_io_executor& executor, linux::Fd fd);

  bool is_open() const { return descriptor_.is_open(); }
  int fd() { return descriptor_.native_handle(); }

  // What is there: 0 at the end (a terminal that nobody has open any more ends, too), nothing
  // while there is nothing. Throws Error for a stream that is torn.
  std::optional<std::size_t> try_read(std::span<char> into);
  // As much as fits, perhaps nothing. Throws Error when nobody reads it any more.
  std::size_t try_write(std::string_view bytes);

  // Return when it may be tried again; or when somebody called wake() or close().
  boost::asio::awaitable<void> wait_readable();
  boost::asio::awaitable<void> wait_writable();
  void wake();
  void close();

 private:
  boost::asio::posix::stream_descriptor descriptor_;
};

}  // namespace hearth::remote
