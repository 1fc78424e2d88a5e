#include "bench/surface_client.h"

#include <sys/sendfile.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"

namespace hearth::bench {
namespace {

// Where the value of a header begins; npos when there is none. Ours are spelled as we spell them.
std::size_t find_field(const std::string& head, std::string_view name) {
  const std::size_t at = head.find(fmt::format("\r\n{}: ", name));
  return at == std::string::npos ? at : at + name.size() + 4;
}

}  // namespace

void SurfaceClient::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) throw_errno("send a request");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool SurfaceClient::receive_more() {
  std::array<char, 16384> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  const ssize_t got = ::recv(connection_.get(), piece.data(), piece.size(), 0);
  if (got < 0) throw_errno("receive an answer");
  buffer_.append(piece.data(), static_cast<std::size_t>(got));
  return got > 0;
}

std::string SurfaceClient::receive_head() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!receive_more()) fail(Code::unavailable, "the sandbox closed the connection");
  }
  std::string head = buffer_.substr(0, end + 2);
  buffer_.erase(0, end + 4);
  if (!head.starts_with("HTTP/1.1 2")) {
    receive_body(head);
    fail(Code::internal, "the sandbox answered '{}' {}", head.substr(0, head.find('\r')), body_);
  }
  return head;
}

std::string_view SurfaceClient::receive_body(const std::string& head) {
  const auto need = [this](std::size_t count) {
    while (buffer_.size() < count) {
      if (!receive_more()) fail(Code::unavailable, "the sandbox closed the connection");
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
  return receive_body(receive_head());
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
    const ssize_t got = ::recv(connection_.get(), piece.data(), piece.size(), 0);
    if (got <= 0) fail(Code::unavailable, "the sandbox closed the connection");
    left -= static_cast<std::uint64_t>(got);
  }
  return size;
}

std::string render_request(std::string_view method, std::string_view target,
                           std::string_view content_type, std::string_view body) {
  return fmt::format(
      "{} {} HTTP/1.1\r\nHost: sandbox\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n{}", method,
      target, content_type, body.size(), body);
}

}  // namespace hearth::bench
