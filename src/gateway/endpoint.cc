#include "gateway/endpoint.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/error.h"

namespace hearth::gateway {
namespace {

// A TLS record holds no more; parts that fit together travel as one.
constexpr std::size_t kRecordBytes = 16 << 10;

// A peer whose machine went away is noticed after two minutes.
void tune(int socket_fd) {
  const auto set = [&](int level, int name, int value) {
    ::setsockopt(socket_fd, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 15);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
}

Moved failed(int error) {
  return {.state = Io::failed, .error = error};
}

int socket_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

// What recv() or send() returned, as OpenSSL wants to be told it.
int tell(BIO* bio, ssize_t moved, int retry_flag, std::size_t* count) {
  BIO_clear_retry_flags(bio);
  if (moved > 0) {
    *count = static_cast<std::size_t>(moved);
    return 1;
  }
  if (moved < 0 && (errno == EAGAIN || errno == EINTR))
    BIO_set_flags(bio, retry_flag | BIO_FLAGS_SHOULD_RETRY);
  return 0;
}

int read_for_tls(BIO* bio, char* into, std::size_t size, std::size_t* count) {
  return tell(bio, ::recv(socket_of(bio), into, size, MSG_DONTWAIT), BIO_FLAGS_READ, count);
}

int write_for_tls(BIO* bio, const char* from, std::size_t size, std::size_t* count) {
  const ssize_t sent = ::send(socket_of(bio), from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  return tell(bio, sent, BIO_FLAGS_WRITE, count);
}

long control_for_tls(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// OpenSSL's own trusts O_NONBLOCK, which is the open file's and not ours alone: the guest that
// connected a socket inside its sandbox could keep it, take that flag away, and have a thread of
// ours wait for it.
BIO* make_bio(int socket_fd) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "endpoint");
    if (made == nullptr || BIO_meth_set_read_ex(made, read_for_tls) != 1 ||
        BIO_meth_set_write_ex(made, write_for_tls) != 1 ||
        BIO_meth_set_ctrl(made, control_for_tls) != 1)
      fail(Code::internal, "teach TLS to read sockets");
    return made;
  }();
  BIO* bio = BIO_new(method);
  if (bio == nullptr) fail(Code::internal, "start TLS");
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket_fd)));
  BIO_set_init(bio, 1);
  return bio;
}

}  // namespace

void Endpoint::FreeTls::operator()(ssl_st* tls) const {
  SSL_free(tls);
}

Endpoint::Endpoint(linux::Fd socket, bool is_connecting)
    : socket_(std::move(socket)), is_writable_(!is_connecting) {
  tune(socket_.get());
}

Endpoint::~Endpoint() {
  unwatch();
}

void Endpoint::start_tls(ssl_ctx_st* context, TlsRole role) {
  tls_.reset(SSL_new(context));
  if (!tls_) fail(Code::internal, "start TLS");
  BIO* const bio = make_bio(socket_.get());
  SSL_set_bio(tls_.get(), bio, bio);  // which owns it
  SSL_set_mode(tls_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (role == TlsRole::server) {
    SSL_set_accept_state(tls_.get());
  } else {
    SSL_set_connect_state(tls_.get());
  }
}

void Endpoint::join(Loop& loop, EndpointOwner& owner) {
  owner_ = &owner;
  loop_ = &loop;
  loop.watch(socket_.get(), *this, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

// Before the descriptor is closed: the guest that connected the socket may have kept another one of
// it, and epoll would go on telling a dead endpoint of its events.
void Endpoint::unwatch() {
  if (loop_ != nullptr && socket_) loop_->unwatch(socket_.get());
  loop_ = nullptr;
}

void Endpoint::on_event(std::uint32_t events) {
  if (!socket_) return;
  if ((events & EPOLLIN) != 0) is_readable_ = true;
  if ((events & EPOLLOUT) != 0) is_writable_ = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) has_ended_ = true;
  // An error is told by the next call, whichever that is.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) is_writable_ = true;
  if (owner_ != nullptr) owner_->on_ready(*this);
}

Moved Endpoint::read(std::span<char> into) {
  if (tls_) return read_tls(into);
  const ssize_t count = ::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
  if (count > 0) {
    // Less than asked for is all there is: the next byte comes with an event (epoll(7)).
    if (static_cast<std::size_t>(count) < into.size()) is_readable_ = false;
    return {.state = Io::moved, .bytes = static_cast<std::size_t>(count)};
  }
  if (count == 0) return {.state = Io::ended};
  if (errno == EAGAIN) {
    is_readable_ = false;
    // An end that was announced and is not here yet comes with an event too.
    has_ended_ = false;
    return {};
  }
  if (errno == EINTR) return {};
  return failed(errno);
}

Moved Endpoint::write(std::span<const iovec> parts) {
  if (tls_) return write_tls(parts);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  const ssize_t count =
      parts.size() == 1
          ? ::send(socket_.get(), parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL)
          : ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count >= 0) {
    is_connected_ = true;
    return {.state = Io::moved, .bytes = static_cast<std::size_t>(count)};
  }
  if (errno == EAGAIN) {
    is_writable_ = false;
    return {};
  }
  if (errno == EINTR) return {};
  return failed(errno);
}

Moved Endpoint::tls_result(int result, bool is_read) {
  switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      is_readable_ = false;
      has_ended_ = false;
      if (!is_read) is_writable_ = false;
      return {};
    case SSL_ERROR_WANT_WRITE:
      is_writable_ = false;
      if (is_read) is_readable_ = false;
      return {};
    case SSL_ERROR_ZERO_RETURN:
      return {.state = Io::ended};
    default:
      return failed(0);
  }
}

Moved Endpoint::read_tls(std::span<char> into) {
  ERR_clear_error();
  std::size_t count = 0;
  const int result = SSL_read_ex(tls_.get(), into.data(), into.size(), &count);
  if (result == 1) {
    is_readable_ = true;  // records that were read from the socket cause no event
    return {.state = Io::moved, .bytes = count};
  }
  return tls_result(result, true);
}

Moved Endpoint::write_tls(std::span<const iovec> parts) {
  ERR_clear_error();
  std::array<char, kRecordBytes> record;
  std::size_t size = 0;
  const void* data = record.data();
  if (parts.size() == 1) {
    data = parts[0].iov_base;
    size = parts[0].iov_len;
  } else {
    for (const iovec& part : parts) {
      const std::size_t fits = std::min(part.iov_len, record.size() - size);
      std::memcpy(record.data() + size, part.iov_base, fits);
      size += fits;
      if (fits < part.iov_len) break;
    }
  }
  std::size_t count = 0;
  const int result = SSL_write_ex(tls_.get(), data, size, &count);
  if (result != 1) return tls_result(result, false);
  is_connected_ = true;
  return {.state = Io::moved, .bytes = count};
}

void Endpoint::finish() {
  if (!socket_) return;
  if (tls_) {
    ERR_clear_error();
    SSL_shutdown(tls_.get());
  }
  ::shutdown(socket_.get(), SHUT_WR);
}

void Endpoint::close(bool reset) {
  if (!socket_) return;
  unwatch();
  // In any case: whoever has the same socket may have said that a close has to wait.
  const linger how{.l_onoff = reset ? 1 : 0, .l_linger = 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &how, sizeof how);
  tls_.reset();
  socket_.reset();
}

}  // namespace hearth::gateway
