#include "serve/testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/error.h"
#include "http/head.h"
#include "linux/tcp.h"

namespace hearth::serve {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

}  // namespace

Listening listen_on_loopback() {
  linux::TcpListener listener = linux::listen_tcp(linux::kLoopback, 0, 128);
  return {.socket = std::move(listener.socket), .port = listener.port};
}

TestClient::TestClient(std::uint16_t port)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const sockaddr_in address = loopback(port);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw_errno("connect to port {}", port);
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void TestClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) throw_errno("send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool TestClient::fill() {
  char piece[65536];
  const ssize_t got = ::recv(socket_.get(), piece, sizeof piece, 0);
  if (got < 0) throw_errno("receive");
  buffer_.append(piece, static_cast<std::size_t>(got));
  return got > 0;
}

std::string TestClient::take_line() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (!fill()) fail(Code::unavailable, "the server closed the connection");
  }
  return take(end + 2).substr(0, end);
}

std::string TestClient::take(std::size_t count) {
  while (buffer_.size() < count) {
    if (!fill()) fail(Code::unavailable, "the server closed the connection");
  }
  std::string bytes = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return bytes;
}

http::Response TestClient::receive_head() {
  http::Response response;
  const std::string status = take_line();
  if (!status.starts_with("HTTP/1.1 ")) fail(Code::invalid, "'{}' is no status line", status);
  response.status = static_cast<unsigned>(std::stoul(status.substr(9)));
  for (std::string line = take_line(); !line.empty(); line = take_line()) {
    const std::size_t colon = line.find(": ");
    response.headers.add(line.substr(0, colon), line.substr(colon + 2));
  }
  chunked_ = response.headers.has_token("Transfer-Encoding", "chunked");
  left_ = http::parse_number(response.headers.value("Content-Length")).value_or(0);
  until_end_ = !chunked_ && response.headers.find("Content-Length") == nullptr &&
               response.headers.has_token("Connection", "close");
  return response;
}

std::optional<std::string> TestClient::receive_piece() {
  if (chunked_) {
    const std::size_t size = http::parse_number(take_line(), 16).value();
    std::string chunk = take(size);
    take_line();
    if (size > 0) return chunk;
    chunked_ = false;
    return std::nullopt;
  }
  if (until_end_) {
    if (buffer_.empty() && !fill()) return std::nullopt;
    return std::exchange(buffer_, {});
  }
  if (left_ == 0) return std::nullopt;
  if (buffer_.empty() && !fill()) fail(Code::unavailable, "the server closed the connection");
  std::string piece = take(std::min(left_, buffer_.size()));
  left_ -= piece.size();
  return piece;
}

http::Response TestClient::receive(bool has_body) {
  http::Response response = receive_head();
  while (has_body) {
    const auto piece = receive_piece();
    if (!piece) break;
    response.body += *piece;
  }
  return response;
}

http::Response TestClient::ask(const http::Request& request) {
  std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n",
                                 request.method, request.target, request.body.size());
  for (const http::Field& field : request.headers)
    text += fmt::format("{}: {}\r\n", field.name, field.value);
  send(text + "\r\n" + request.body);
  return receive(request.method != "HEAD");
}

bool TestClient::is_closed() {
  return buffer_.empty() && !fill();
}

}  // namespace hearth::serve
