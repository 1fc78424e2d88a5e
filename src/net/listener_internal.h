// Listening sockets.
#pragma once

#include <cstdint>
#include <string>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>

namespace hearth::net {

using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;

// All throw Error.
Acceptor listen_tcp(boost::asio::io_context& io, const std::string& address, std::uint16_t port);
Acceptor adopt_listener(boost::asio::io_context& io, int fd);

// The file of a unix socket. Removed with this object, unless it is no longer ours.
class UnixPath {
 public:
  explicit UnixPath(std::string path) : path_(std::move(path)) {}
  UnixPath(const UnixPath&) = delete;
  UnixPath& operator=(const UnixPath&) = delete;
  ~UnixPath();

  Acceptor listen(boost::asio::io_context& io);

 private:
  bool is_stale() const;

  std::string path_;
  std::uint64_t device_ = 0;  // of the file, once it is made
  std::uint64_t inode_ = 0;   //
};

std::uint16_t port_of(const Acceptor& acceptor);

}  // namespace hearth::net
