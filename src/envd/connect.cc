#include "envd/connect.h"

#include <algorithm>
#include <array>

#include "base/base64.h"
#include "base/json_text.h"
#include "envd/cors.h"
#include "http/head.h"

namespace hearth::envd {
namespace {

using namespace std::chrono_literals;

constexpr Duration kKeepalive = 90s;  // where the client does not say
constexpr std::size_t kMaxTimeoutDigits = 10;
constexpr std::size_t kEnvelopeHead = 5;

struct CodeWords {
  std::string_view name;
  unsigned status;
};
// In the order of RpcCode.
constexpr std::array<CodeWords, 16> kCodes = {{{"canceled", 499},
                                               {"unknown", 500},
                                               {"invalid_argument", 400},
                                               {"deadline_exceeded", 504},
                                               {"not_found", 404},
                                               {"already_exists", 409},
                                               {"permission_denied", 403},
                                               {"resource_exhausted", 429},
                                               {"failed_precondition", 400},
                                               {"aborted", 409},
                                               {"out_of_range", 400},
                                               {"unimplemented", 501},
                                               {"internal", 500},
                                               {"unavailable", 503},
                                               {"data_loss", 500},
                                               {"unauthenticated", 401}}};

RpcCode rpc_code(Code code) {
  switch (code) {
    case Code::invalid:
      return RpcCode::invalid_argument;
    case Code::unauthenticated:
      return RpcCode::unauthenticated;
    case Code::forbidden:
      return RpcCode::permission_denied;
    case Code::not_found:
      return RpcCode::not_found;
    case Code::already_exists:
      return RpcCode::already_exists;
    case Code::conflict:
      return RpcCode::failed_precondition;
    case Code::exhausted:
      return RpcCode::resource_exhausted;
    case Code::timeout:
      return RpcCode::deadline_exceeded;
    case Code::unavailable:
      return RpcCode::unavailable;
    case Code::internal:
      break;
  }
  return RpcCode::internal;
}

// The name before ':' of "Basic base64(name:password)". What is no such thing names nobody.
std::string user_of(std::string_view authorization) {
  constexpr std::string_view kScheme = "Basic ";
  if (!http::equal_ignoring_case(authorization.substr(0, kScheme.size()), kScheme)) return {};
  const auto decoded = base64_decode(authorization.substr(kScheme.size()));
  if (!decoded || decoded->find(':') == std::string::npos) return {};
  return decoded->substr(0, decoded->find(':'));
}

std::optional<Duration> timeout_of(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto milliseconds = http::parse_number(text);
  if (!milliseconds || text.size() > kMaxTimeoutDigits) {
    throw RpcError(RpcCode::invalid_argument,
                   fmt::format("Connect-Timeout-Ms is '{}'", text.substr(0, 20)));
  }
  if (*milliseconds == 0) return std::nullopt;
  return std::chrono::milliseconds(*milliseconds);
}

Duration keepalive_of(std::string_view text) {
  const auto seconds = http::parse_number(text);
  constexpr std::uint64_t kDay = 24 * 3600;
  if (!seconds || *seconds == 0 || *seconds > kDay) return kKeepalive;
  return std::chrono::seconds(*seconds);
}

}  // namespace

std::string_view to_string(RpcCode code) {
  return kCodes.at(static_cast<std::size_t>(code)).name;
}

unsigned status_of(RpcCode code) {
  return kCodes.at(static_cast<std::size_t>(code)).status;
}

RpcProblem rpc_problem(const Error& error) {
  const auto* own = dynamic_cast<const RpcError*>(&error);
  return {.code = own != nullptr ? own->rpc_code() : rpc_code(error.code()),
          .message = error.what()};
}

std::string problem_json(const RpcProblem& problem) {
  return fmt::format(R"({{"code":"{}","message":{}}})", to_string(problem.code),
                     json_quote(problem.message));
}

std::string make_envelope(std::uint8_t flags, std::string_view payload) {
  std::string bytes;
  bytes.reserve(kEnvelopeHead + payload.size());
  bytes += static_cast<char>(flags);
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(payload.size() >> shift);
  bytes += payload;
  return bytes;
}

// False when there are no bytes at all.
bool EnvelopeReader::read(std::string& into, std::size_t count) {
  while (into.size() < count) {
    if (piece_.empty()) piece_ = source_();
    if (piece_.empty() && into.empty()) return false;
    if (piece_.empty()) fail(Code::invalid, "the stream ends in the middle of a message");
    const std::size_t taken = std::min(count - into.size(), piece_.size());
    into += piece_.substr(0, taken);
    piece_.remove_prefix(taken);
  }
  return true;
}

std::optional<Envelope> EnvelopeReader::next() {
  std::string head;
  if (!read(head, kEnvelopeHead)) return std::nullopt;
  Envelope envelope{.flags = static_cast<std::uint8_t>(head[0]), .payload = {}};
  std::size_t length = 0;
  for (std::size_t i = 1; i < kEnvelopeHead; ++i)
    length = length << 8 | static_cast<unsigned char>(head[i]);
  if ((envelope.flags & kCompressed) != 0)
    throw RpcError(RpcCode::unimplemented, "compressed messages are not supported");
  if (length > kMaxMessage) {
    throw RpcError(RpcCode::resource_exhausted,
                   fmt::format("a message of {} bytes; {} is the most", length, kMaxMessage));
  }
  if (kept_ != nullptr) kept_->set(length);
  if (length > 0 && !read(envelope.payload, length))
    fail(Code::invalid, "the stream ends in the middle of a message");
  return envelope;
}

std::optional<Call> find_call(const http::Headers& headers) {
  std::string_view type = headers.value("Content-Type");
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  const auto is = [&](std::string_view known) { return http::equal_ignoring_case(type, known); };
  Call call;
  call.is_stream = is("application/connect+json") || is("application/connect+proto");
  call.codec =
      is("application/proto") || is("application/connect+proto") ? Codec::proto : Codec::json;
  if (!call.is_stream && call.codec == Codec::json && !is("application/json")) return std::nullopt;
  return call;
}

void read_call_head(const http::Headers& headers, Call& call) {
  call.user = user_of(headers.value("Authorization"));
  call.keepalive = keepalive_of(headers.value("Keepalive-Ping-Interval"));
  call.wants_short_entries = headers.value("User-Agent").starts_with("connect-python");
  const std::string* version = headers.find("Connect-Protocol-Version");
  if (version != nullptr && *version != "1") {
    throw RpcError(RpcCode::invalid_argument,
                   fmt::format("Connect-Protocol-Version is '{}', not 1", *version));
  }
  const std::string_view encoding =
      headers.value(call.is_stream ? "Connect-Content-Encoding" : "Content-Encoding");
  if (!encoding.empty() && encoding != "identity") {
    throw RpcError(RpcCode::unimplemented,
                   fmt::format("compression '{}' is not supported", encoding));
  }
  call.timeout = timeout_of(headers.value("Connect-Timeout-Ms"));
}

void RpcStream::send_envelope(std::uint8_t flags, std::string_view payload) {
  if (!exchange_.begun()) {
    http::Response head;
    head.headers.add("Content-Type", codec_ == Codec::json ? "application/connect+json"
                                                           : "application/connect+proto");
    add_cors(head.headers);
    exchange_.begin(head);
  }
  exchange_.write(make_envelope(flags, payload));
}

void RpcStream::finish() {
  send_envelope(kEndOfStream, "{}");
  exchange_.end();
}

void RpcStream::finish(const RpcProblem& problem) {
  send_envelope(kEndOfStream, R"({"error":)" + problem_json(problem) + '}');
  exchange_.end();
}

}  // namespace hearth::envd
