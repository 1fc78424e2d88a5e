#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "base/error.h"
#include "net/listener_internal.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Connections that wait to be accepted. The kernel caps it at net.core.somaxconn.
constexpr int kBacklog = 1024;

[[noreturn]] void throw_listen(const std::string& where, const error_code& error) {
  if (error == asio::error::address_in_use) {
    fail(Code::already_exists, "listen on {}: another process does", where);
  }
  throw_errno_text(error.value(), fmt::format("listen on {}", where));
}

}  // namespace

Acceptor listen_tcp(asio::io_context& io, const std::string& address, std::uint16_t port) {
  error_code error;
  const auto parsed = asio::ip::make_address(address, error);
  if (error) fail(Code::invalid, "'{}' is not an IP address to listen on", address);
  const asio::ip::tcp::endpoint endpoint(parsed, port);
  const std::string where = fmt::format("{} port {}", address, port);
  Acceptor acceptor(io);
  if (acceptor.open(endpoint.protocol(), error)) throw_listen(where, error);
  // Without it a restart would have to wait a minute for the connections of the last life.
  const asio::socket_base::reuse_address reuse(true);
  if (acceptor.set_option(reuse, error)) throw_listen(where, error);
  if (acceptor.bind(endpoint, error)) throw_listen(where, error);
  if (acceptor.listen(kBacklog, error)) throw_listen(where, error);
  return acceptor;
}

Acceptor adopt_listener(asio::io_context& io, int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw_errno("look at the listening socket {}", fd);
  }
  Acceptor acceptor(io);
  error_code error;
  const asio::generic::stream_protocol protocol(address.ss_family, 0);
  if (acceptor.assign(protocol, fd, error)) throw_listen(fmt::format("socket {}", fd), error);
  return acceptor;
}

bool UnixPath::is_stale() const {
  struct stat file{};
  if (lstat(path_.c_str(), &file) != 0 || !S_ISSOCK(file.st_mode)) return false;
  asio::io_context io;
  asio::local::stream_protocol::socket probe(io);
  error_code error;
  return probe.connect(asio::local::stream_protocol::endpoint(path_), error) ==
         asio::error::connection_refused;
}

Acceptor UnixPath::listen(asio::io_context& io) {
  if (path_.size() >= sizeof(sockaddr_un::sun_path)) {
    fail(Code::invalid, "'{}' is too long for a unix socket", path_);
  }
  const asio::local::stream_protocol::endpoint endpoint(path_);
  error_code error;
  Acceptor acceptor(io);
  if (acceptor.open(endpoint.protocol(), error)) throw_listen(path_, error);
  // Linux gives the file the mode of the socket at the time of bind(2), so that there is no moment
  // in which others may connect; changing umask would change it for every thread.
  if (fchmod(acceptor.native_handle(), 0600) != 0) throw_errno("restrict {}", path_);
  if (acceptor.bind(endpoint, error) == asio::error::address_in_use && is_stale()) {
    unlink(path_.c_str());
    error = acceptor.bind(endpoint, error);
  }
  if (error) throw_listen(path_, error);
  struct stat file{};
  if (lstat(path_.c_str(), &file) != 0) throw_errno("look at {}", path_);
  device_ = file.st_dev;
  inode_ = file.st_ino;
  if (acceptor.listen(kBacklog, error)) throw_listen(path_, error);
  return acceptor;
}

UnixPath::~UnixPath() {
  struct stat file{};
  const bool ours = inode_ != 0 && lstat(path_.c_str(), &file) == 0 && file.st_dev == device_ &&
                    file.st_ino == inode_;
  if (ours) unlink(path_.c_str());
}

std::uint16_t port_of(const Acceptor& acceptor) {
  const auto endpoint = acceptor.local_endpoint();
  asio::ip::tcp::endpoint address;
  const int family = endpoint.data()->sa_family;
  if ((family != AF_INET && family != AF_INET6) || endpoint.size() > address.capacity()) return 0;
  std::memcpy(address.data(), endpoint.data(), endpoint.size());
  return address.port();
}

}  // namespace hearth::net
