// The Connect protocol over HTTP/1.1, as far as the SDKs speak it: unary calls, streams from the
// server, streams from the client; JSON and binary protobuf, without compression.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "envd/codec.h"
#include "serve/exchange.h"

namespace hearth::envd {

enum class RpcCode {
  canceled,
  unknown,
  invalid_argument,
  deadline_exceeded,
  not_found,
  already_exists,
  permission_denied,
  resource_exhausted,
  failed_precondition,
  aborted,
  out_of_range,
  unimplemented,
  internal,
  unavailable,
  data_loss,
  unauthenticated,
};
std::string_view to_string(RpcCode code);
unsigned status_of(RpcCode code);

// For codes that Error has no word for.
class RpcError : public Error {
 public:
  RpcError(RpcCode code, const std::string& message)
      : Error(Code::internal, message), rpc_code_(code) {}
  RpcCode rpc_code() const { return rpc_code_; }

 private:
  RpcCode rpc_code_;
};

struct RpcProblem {
  RpcCode code = RpcCode::internal;
  std::string message;
};
// The one place where our errors become theirs.
RpcProblem rpc_problem(const Error& error);
// {"code":"not_found","message":"..."}
std::string problem_json(const RpcProblem& problem);

// What a message may be at most; larger input comes in several.
inline constexpr std::size_t kMaxMessage = std::size_t{16} << 20;

// Messages on a stream: a byte of flags, four of length, and so many more.
struct Envelope {
  std::uint8_t flags = 0;
  std::string payload;
};
inline constexpr std::uint8_t kCompressed = 1;
inline constexpr std::uint8_t kEndOfStream = 2;

std::string make_envelope(std::uint8_t flags, std::string_view payload);

class EnvelopeReader {
 public:
  // `kept` counts the message that was read last, and must outlive the reader.
  explicit EnvelopeReader(serve::Source source, serve::Share* kept = nullptr)
      : source_(std::move(source)), kept_(kept) {}

  // The next message; nothing at the end. Throws Error(invalid), and RpcError for what is
  // compressed or too large.
  std::optional<Envelope> next();

 private:
  bool read(std::string& into, std::size_t count);

  serve::Source source_;
  serve::Share* kept_;
  std::string_view piece_;
};

// What a request's head says about a call.
struct Call {
  Codec codec = Codec::json;
  bool is_stream = false;
  std::optional<Duration> timeout;
  Duration keepalive{};
  std::string user;                  // empty: the default
  bool wants_short_entries = false;  // an old client that does not take all fields
};

// Nothing for a content type that no call has.
std::optional<Call> find_call(const http::Headers& headers);
// What is in the rest of the head. Throws RpcError.
void read_call_head(const http::Headers& headers, Call& call);

// The answer of a stream. Its head goes out with the first message, or with the end.
class RpcStream {
 public:
  RpcStream(serve::Exchange& exchange, Codec codec) : exchange_(exchange), codec_(codec) {}

  template <typename M>
  void send(const M& message) {
    send_envelope(0, encode(codec_, message));
  }
  // From now on messages that follow each other go out together: with flush(), which must come
  // before any wait, or with the end.
  void hold_back() { exchange_.hold_back(); }
  void flush() { exchange_.flush(); }
  void finish();
  void finish(const RpcProblem& problem);

 private:
  void send_envelope(std::uint8_t flags, std::string_view payload);

  serve::Exchange& exchange_;
  Codec codec_;
};

}  // namespace hearth::envd
