#include "bench/surface_client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <openssl/ssl.h>

#include "base/error.h"

namespace hearth::bench {
namespace {

// Where the value of a header begins; npos when there is none. Ours are spelled as we spell them.
std::size_t find_field(const std::string& head, std::string_view name) {
  const std::size_t at = head.find(fmt::format("\r\n{}: ", name));
  return at == std::string::npos ? at : at + name.size() + 4;
}

// One for all sessions; lives as long as the program.
SSL_CTX* tls_settings() {
  static SSL_CTX* const kSettings = SSL_CTX_new(TLS_client_method());
  return kSettings;
}

}  // namespace

void TlsEnd::operator()(ssl_st* tls) const {
  SSL_free(tls);
}

Tls begin_tls(int connection_fd) {
  Tls tls(SSL_new(tls_settings()));
  if (!tls || SSL_set_fd(tls.get(), connection_fd) != 1 || SSL_connect(tls.get()) != 1)
    fail(Code::unavailable, "the server did not agree on TLS");
  return tls;
}

linux::Fd connect_to_port(std::uint16_t port) {
  linux::Fd connection(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!connection) throw_errno("make a socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0)
    throw_errno("connect to port {}", port);
  const int yes = 1;
  ::setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return connection;
}

void SurfaceClient::send(std::string_view bytes) const {
  if (tls_) {
    if (SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size())) <= 0)
      fail(Code::unavailable, "send a request: the connection is gone");
    return;
  }
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) throw_errno("send a request");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// 0: the server has closed the connection.
std::size_t SurfaceClient::receive(char* room, std::size_t size) {
  if (tls_) {
    const int got = SSL_read(tls_.get(), room, static_cast<int>(size));
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  const ssize_t got = ::recv(connection_.get(), room, size, 0);
  if (got < 0) throw_errno("receive an answer");
  return static_cast<std::size_t>(got);
}

bool SurfaceClient::receive_more() {
  std::array<char, 16384> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  const std::size_t got = receive(piece.data(), piece.size());
  buffer_.append(piece.data(), got);
  return got > 0;
}

std::string SurfaceClient::receive_head() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!receive_more()) fail(Code::unavailable, "the server closed the connection");
  }
  std::string head = buffer_.substr(0, end + 2);
  buffer_.erase(0, end + 4);
  if (!head.starts_with("HTTP/1.1 2")) {
    receive_body(head);
    fail(Code::internal, "the server answered '{}' {}", head.substr(0, head.find('\r')), body_);
  }
  return head;
}

std::string_view SurfaceClient::receive_body(const std::string& head) {
  const auto need = [this](std::size_t count) {
    while (buffer_.size() < count) {
      if (!receive_more()) fail(Code::unavailable, "the server closed the connection");
    }
  };
  body_.clear();
  if (const std::size_t at = find_field(head, "Content-Length"); at != std::string::npos) {
    const std::size_t size = std::stoul(head.substr(at));
    need(size);
    body_ = buffer_.substr(0, size);
    buffer_.erase(0, size);
  } else if (find_field(head, "Transfer-Encoding") != std::string::npos) {
    while (true) {
      std::size_t line = 0;
      while ((line = buffer_.find("\r\n")) == std::string::npos) need(buffer_.size() + 1);
      const std::size_t size = std::stoul(buffer_.substr(0, line), nullptr, 16);
      need(line + 2 + size + 2);
      body_.append(buffer_, line + 2, size);
      buffer_.erase(0, line + 2 + size + 2);
      if (size == 0) break;
    }
  }
  return body_;
}

std::string_view SurfaceClient::ask(std::string_view request) {
  send(request);
  return answer();
}

std::string_view SurfaceClient::answer() {
  return receive_body(receive_head());
}

std::string_view SurfaceClient::upload(std::string_view head, int file, std::uint64_t size) {
  send(head);
  off_t offset = 0;
  while (size > 0) {
    const ssize_t sent = ::sendfile(connection_.get(), file, &offset, size);
    if (sent <= 0) throw_errno("send a file");
    size -= static_cast<std::uint64_t>(sent);
  }
  return answer();
}

std::uint64_t SurfaceClient::download(std::string_view request) {
  send(request);
  const std::string head = receive_head();
  const std::size_t at = find_field(head, "Content-Length");
  if (at == std::string::npos) fail(Code::internal, "a download without a length");
  const std::uint64_t size = std::stoull(head.substr(at));
  std::uint64_t left = size - buffer_.size();
  buffer_.clear();
  std::string piece(std::size_t{256} << 10, '\0');
  while (left > 0) {
    const std::size_t got = receive(piece.data(), std::min<std::uint64_t>(piece.size(), left));
    if (got == 0) fail(Code::unavailable, "the server closed the connection");
    left -= got;
  }
  return size;
}

void SurfaceClient::begin_stream(std::string_view request) {
  send(request);
  receive_head();
}

void SurfaceClient::wait_for_text(std::string_view text) {
  std::size_t at = 0;
  while ((at = buffer_.find(text)) == std::string::npos) {
    if (!receive_more()) fail(Code::unavailable, "the server closed the connection");
  }
  buffer_.erase(0, at + text.size());
}

std::string_view SurfaceClient::next_line() {
  std::size_t end = 0;
  while ((end = buffer_.find('\n', lines_read_)) == std::string::npos) {
    buffer_.erase(0, std::exchange(lines_read_, 0));
    if (!receive_more()) fail(Code::unavailable, "the server closed the connection");
  }
  const std::string_view line(buffer_.data() + lines_read_, end - lines_read_);
  lines_read_ = end + 1;
  return line;
}

void SurfaceClient::hang_up() const {
  ::shutdown(connection_.get(), SHUT_RDWR);
}

std::string render_request(std::string_view method, std::string_view target,
                           std::string_view content_type, std::string_view body) {
  return fmt::format(
      "{} {} HTTP/1.1\r\nHost: sandbox\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n{}", method,
      target, content_type, body.size(), body);
}

}  // namespace hearth::bench
