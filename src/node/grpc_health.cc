#include "node/grpc_health.h"

#include "base/error.h"

namespace hearth::node {
namespace {

enum Type : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7
};
constexpr std::uint8_t kEndStream = 0x1;
constexpr std::uint8_t kAck = 0x1;
constexpr std::uint8_t kEndHeaders = 0x4;
constexpr std::uint8_t kPadded = 0x8;
constexpr std::size_t kFrameHead = 9;
constexpr std::size_t kMostFrame = 16384;  // what a server may send unless told otherwise
constexpr std::size_t kMostMessage = 4096;
constexpr std::size_t kMostText = 1000;  // of a name that we send
constexpr std::size_t kMessageHead = 5;
constexpr std::uint32_t kStream = 1;

void put_frame(std::string& out, std::uint8_t type, std::uint8_t flags, std::uint32_t stream,
               std::string_view payload) {
  for (const int shift : {16, 8, 0}) out += static_cast<char>(payload.size() >> shift & 0xff);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift & 0xff);
  out += payload;
}

// RFC 7541 5.1 behind a prefix whose upper bits are given.
void put_number(std::string& out, unsigned upper, unsigned prefix_bits, std::size_t number) {
  const std::size_t most = (std::size_t{1} << prefix_bits) - 1;
  if (number < most) {
    out += static_cast<char>(upper | number);
    return;
  }
  out += static_cast<char>(upper | most);
  for (number -= most; number >= 128; number >>= 7) out += static_cast<char>((number & 127) | 128);
  out += static_cast<char>(number);
}

void put_text(std::string& out, std::string_view text) {
  put_number(out, 0, 7, text.size());
  out += text;
}

// Literal, not indexed; the name by its place in the static table, or in full.
void put_field(std::string& out, unsigned name, std::string_view value) {
  put_number(out, 0, 4, name);
  put_text(out, value);
}
void put_field(std::string& out, std::string_view name, std::string_view value) {
  out += '\0';
  put_text(out, name);
  put_text(out, value);
}

std::uint32_t number_of(std::string_view bytes) {
  std::uint32_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

// A varint of protobuf; nothing when it does not end.
std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    number |= std::uint64_t{byte & 127u} << shift;
    if ((byte & 128) == 0) return number;
  }
  return std::nullopt;
}

bool skip(std::string_view& bytes, std::size_t count) {
  if (count > bytes.size()) return false;
  bytes.remove_prefix(count);
  return true;
}

// Field 1 of HealthCheckResponse; nothing for what is no message.
std::optional<std::uint64_t> parse_status(std::string_view message) {
  std::uint64_t status = 0;
  while (!message.empty()) {
    const auto tag = take_varint(message);
    if (!tag) return std::nullopt;
    const std::uint64_t wire = *tag & 7;
    bool ok = false;
    if (wire == 0 || wire == 2) {
      const auto value = take_varint(message);
      ok = value && (wire == 0 || (*value <= message.size() && skip(message, *value)));
      if (ok && wire == 0 && *tag >> 3 == 1) status = *value;
    } else if (wire == 1 || wire == 5) {
      ok = skip(message, wire == 1 ? 8 : 4);
    }
    if (!ok) return std::nullopt;
  }
  return status;
}

}  // namespace

std::string health_check_request(std::string_view authority, std::string_view service) {
  if (authority.size() > kMostText || service.size() > kMostText)
    fail(Code::invalid, "the name of a service has more than {} bytes", kMostText);
  std::string out = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  put_frame(out, kSettings, 0, 0, {});
  std::string fields = "\x83\x86";  // :method POST, :scheme http
  put_field(fields, 1, authority);
  put_field(fields, 4, "/grpc.health.v1.Health/Check");
  put_field(fields, 31, "application/grpc");
  put_field(fields, "te", "trailers");
  put_field(fields, 58, "kube-probe");
  put_frame(out, kHeaders, kEndHeaders, kStream, fields);
  std::string message;
  if (!service.empty()) {
    message += '\x0a';
    for (std::size_t left = service.size();; left >>= 7) {
      message += static_cast<char>((left & 127) | (left >= 128 ? 128 : 0));
      if (left < 128) break;
    }
    message += service;
  }
  std::string framed(1, '\0');
  for (const int shift : {24, 16, 8, 0})
    framed += static_cast<char>(message.size() >> shift & 0xff);
  put_frame(out, kData, kEndStream, kStream, framed + message);
  return out;
}

std::string HealthAnswer::take(std::string_view bytes) {
  waiting_ += bytes;
  std::string reply;
  while (!is_over_ && waiting_.size() >= kFrameHead) {
    const std::string_view head(waiting_.data(), kFrameHead);
    const std::size_t length = number_of(head.substr(0, 3));
    if (length > kMostFrame) fail(Code::invalid, "the server does not speak HTTP/2");
    if (waiting_.size() < kFrameHead + length) break;
    const Frame frame{.type = static_cast<std::uint8_t>(head[3]),
                      .flags = static_cast<std::uint8_t>(head[4]),
                      .stream = number_of(head.substr(5, 4)) & 0x7fffffff,
                      .payload = std::string_view(waiting_).substr(kFrameHead, length)};
    take_frame(frame, reply);
    waiting_.erase(0, kFrameHead + length);
  }
  return reply;
}

void HealthAnswer::take_frame(const Frame& frame, std::string& reply) {
  std::string_view payload = frame.payload;
  if (frame.type == kSettings && (frame.flags & kAck) == 0)
    put_frame(reply, kSettings, kAck, 0, {});
  if (frame.type == kPing && (frame.flags & kAck) == 0)
    put_frame(reply, kPing, kAck, 0, payload.substr(0, 8));
  if (frame.type == kGoAway) fail(Code::unavailable, "the server ended the connection");
  if (frame.stream != kStream) return;
  if (frame.type == kReset) fail(Code::unavailable, "the server broke off the health check");
  if (frame.type == kData) {
    if ((frame.flags & kPadded) != 0) {
      const std::size_t padding =
          payload.empty() ? 1 : static_cast<unsigned char>(payload.front()) + std::size_t{1};
      if (padding > payload.size()) fail(Code::invalid, "the server does not speak HTTP/2");
      payload = payload.substr(1, payload.size() - padding);
    }
    if (message_.size() + payload.size() > kMostMessage)
      fail(Code::invalid, "the answer to the health check has more than {} bytes", kMostMessage);
    message_ += payload;
  }
  if (frame.type == kData || frame.type == kHeaders) is_over_ = (frame.flags & kEndStream) != 0;
}

std::optional<HealthAnswer::Status> HealthAnswer::status() const {
  if (message_.size() < kMessageHead || message_[0] != 0) return std::nullopt;
  const std::size_t length = number_of(std::string_view(message_).substr(1, 4));
  if (message_.size() - kMessageHead != length) return std::nullopt;
  const auto status = parse_status(std::string_view(message_).substr(kMessageHead));
  if (!status || *status > static_cast<std::uint64_t>(Status::no_service)) return std::nullopt;
  return static_cast<Status>(*status);
}

}  // namespace hearth::node
