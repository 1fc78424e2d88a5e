#include "bench/etcd_client.h"

#include <sys/socket.h>

#include <array>

#include "base/error.h"
#include "bench/surface_client.h"

namespace hearth::bench {
namespace {

// RFC 9113: types of frames, flags, settings.
enum Frame : unsigned char {
  data = 0,
  headers = 1,
  reset = 3,
  settings = 4,
  ping = 6,
  go_away = 7,
  window_update = 8,
};
constexpr unsigned char kEnd = 1;  // of DATA and HEADERS: of the stream; of others: ACK
constexpr unsigned char kEndHeaders = 4;
constexpr std::size_t kHeadBytes = 9;
constexpr std::uint32_t kMostWindow = 0x7fff'ffff;
constexpr std::uint32_t kFirstWindow = 65'535;
constexpr std::size_t kReportBytes = 8 << 20;

void append_big_endian(std::string& bytes, std::uint32_t number, unsigned size) {
  while (size-- > 0) bytes += static_cast<char>(number >> (8 * size) & 0xff);
}

std::string frame(Frame type, unsigned char flags, std::uint32_t stream, std::string_view payload) {
  std::string bytes;
  append_big_endian(bytes, static_cast<std::uint32_t>(payload.size()), 3);
  bytes += static_cast<char>(type);
  bytes += static_cast<char>(flags);
  append_big_endian(bytes, stream, 4);
  return bytes.append(payload);
}

std::string window_frame(std::uint32_t more) {
  std::string payload;
  append_big_endian(payload, more, 4);
  return frame(window_update, 0, 0, payload);
}

// HPACK: a literal that goes into no table. Names and values here are short.
void append_header(std::string& block, std::string_view name, std::string_view value) {
  block += '\0';
  block.append(1, static_cast<char>(name.size())).append(name);
  block.append(1, static_cast<char>(value.size())).append(value);
}

void append_varint(std::string& bytes, std::size_t number) {
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  bytes += static_cast<char>(number);
}

// A field of bytes in protobuf.
void append_field(std::string& message, unsigned field, std::string_view value) {
  message += static_cast<char>(field << 3 | 2);
  append_varint(message, value.size());
  message.append(value);
}

std::size_t big_endian(std::string_view bytes) {
  std::size_t number = 0;
  for (const char c : bytes) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

}  // namespace

EtcdClient::EtcdClient(std::uint16_t port) : connection_(connect_to_port(port)) {
  constexpr std::uint32_t kWindowSetting = 4;
  std::string payload;
  append_big_endian(payload, kWindowSetting, 2);
  append_big_endian(payload, kMostWindow, 4);
  send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(settings, 0, 0, payload) +
       window_frame(kMostWindow - kFirstWindow));
}

void EtcdClient::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) throw_errno("send to etcd");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// Until so many bytes are there that were not used.
void EtcdClient::receive(std::size_t size) {
  if (buffer_.size() - used_ >= size) return;
  buffer_.erase(0, used_);
  used_ = 0;
  std::array<char, 65536> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  while (buffer_.size() < size) {
    const ssize_t got = ::recv(connection_.get(), piece.data(), piece.size(), 0);
    if (got <= 0) fail(Code::unavailable, "etcd closed the connection");
    buffer_.append(piece.data(), static_cast<std::size_t>(got));
  }
}

void EtcdClient::take_data(std::size_t size) {
  unreported_ += size;
  if (unreported_ < kReportBytes) return;
  send(window_frame(static_cast<std::uint32_t>(unreported_)));
  unreported_ = 0;
}

std::size_t EtcdClient::ask(std::string_view path, std::string_view message) {
  const std::uint32_t stream = next_stream_;
  next_stream_ += 2;
  std::string block;
  append_header(block, ":method", "POST");
  append_header(block, ":scheme", "http");
  append_header(block, ":path", path);
  append_header(block, ":authority", "etcd");
  append_header(block, "content-type", "application/grpc");
  append_header(block, "te", "trailers");
  std::string body(1, '\0');  // not compressed
  append_big_endian(body, static_cast<std::uint32_t>(message.size()), 4);
  body.append(message);
  send(frame(headers, kEndHeaders, stream, block) + frame(data, kEnd, stream, body));

  std::size_t answered = 0;
  while (true) {
    receive(kHeadBytes);
    const std::string_view head = std::string_view(buffer_).substr(used_, kHeadBytes);
    const std::size_t size = big_endian(head.substr(0, 3));
    const auto type = static_cast<unsigned char>(head[3]);
    const auto flags = static_cast<unsigned char>(head[4]);
    receive(kHeadBytes + size);
    const std::string payload = buffer_.substr(used_ + kHeadBytes, type == data ? 0 : size);
    used_ += kHeadBytes + size;
    if (type == data) {
      answered += size;
      take_data(size);
    } else if (type == settings && !(flags & kEnd)) {
      send(frame(settings, kEnd, 0, ""));
    } else if (type == ping && !(flags & kEnd)) {
      send(frame(ping, kEnd, 0, payload));
    } else if (type == reset || type == go_away) {
      fail(Code::unavailable, "etcd gave up on a request");
    }
    if ((type == data || type == headers) && flags & kEnd) break;
  }
  // A failure is told in headers alone.
  if (answered == 0) fail(Code::internal, "etcd refused a request");
  return answered;
}

void EtcdClient::put(std::string_view key, std::string_view value) {
  std::string message;
  append_field(message, 1, key);
  append_field(message, 2, value);
  ask("/etcdserverpb.KV/Put", message);
}

std::size_t EtcdClient::get(std::string_view key) {
  std::string message;
  append_field(message, 1, key);
  return ask("/etcdserverpb.KV/Range", message);
}

std::size_t EtcdClient::get_all(std::string_view prefix) {
  std::string end(prefix);
  ++end.back();
  std::string message;
  append_field(message, 1, prefix);
  append_field(message, 2, end);
  return ask("/etcdserverpb.KV/Range", message);
}

}  // namespace hearth::bench
