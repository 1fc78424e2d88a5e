#include "serve/exchange.h"

#include <algorithm>
#include <utility>

#include "http/render.h"
#include "http/target.h"

namespace hearth::serve {
namespace {

// What one read of a body takes at most: little where little is announced.
constexpr std::uint64_t kLeastWindow = 4 << 10;
constexpr std::uint64_t kWindow = 256 << 10;

// Of a body that nobody wanted: so much is read to keep the connection.
constexpr std::size_t kMostDrained = 256 << 10;

bool has_no_body(unsigned status) {
  return status == 204 || status == 304 || status / 100 == 1;
}

}  // namespace

Exchange::Exchange(Wire& wire, http::Head head, Allowance* allowance)
    : wire_(wire),
      kept_(allowance),
      decoder_(head.framing),
      window_(head.framing.kind == http::BodyKind::length
                  ? std::clamp(head.framing.length, kLeastWindow, kWindow)
                  : kWindow),
      is_old_(head.minor == 0),
      keep_alive_(head.wants_keep_alive()) {
  request_.method = std::move(head.method);
  request_.target = std::move(head.target);
  request_.headers = std::move(head.headers);
  const auto target = http::parse_target(request_.target);
  if (!target) {
    throw BadHead({.status = 400,
                   .code = Code::invalid,
                   .message = "the request's target is none that can be served"});
  }
  request_.path = target->path;
  request_.query = target->query;
  request_.host = target->authority.empty() ? request_.headers.value("Host") : target->authority;
  expects_continue_ = !is_old_ && request_.headers.has_token("Expect", "100-continue");
}

std::string_view Exchange::read_piece() {
  wire_.use(std::exchange(shown_, 0));
  while (!decoder_.is_done()) {
    const http::BodyDecoder::Step step = decoder_.take(wire_.unread());
    if (step.bad) {
      abandon();
      fail(Code::invalid, "the request's body is not what its head promised");
    }
    if (!step.body.empty()) {
      shown_ = step.used;
      return step.body;
    }
    wire_.use(step.used);
    if (step.used > 0 || decoder_.is_done()) continue;
    if (std::exchange(expects_continue_, false) && !begun_)
      wire_.write({"HTTP/1.1 100 Continue\r\n\r\n"});
    if (!wire_.fill(window_)) {
      abandon();
      fail(Code::unavailable, "the peer left in the middle of a body");
    }
  }
  return {};
}

std::string Exchange::read_body(std::size_t most) {
  std::string body;
  for (std::string_view piece = read_piece(); !piece.empty(); piece = read_piece()) {
    if (piece.size() > most - body.size())
      fail(Code::exhausted, "the request's body is larger than {} bytes", most);
    kept_.set(body.size() + piece.size());
    body += piece;
  }
  return body;
}

std::string Exchange::render(const http::Response& response, std::vector<http::Field> framing) {
  HEARTH_ASSERT(!begun_);
  begun_ = true;
  if (!keep_alive_) framing.push_back({"Connection", "close"});
  return http::render_head(response, framing);
}

void Exchange::respond(const http::Response& response) {
  std::vector<http::Field> framing;
  const bool bodiless = has_no_body(response.status);
  if (!bodiless) framing.push_back({"Content-Length", fmt::to_string(response.body.size())});
  const std::string head = render(response, std::move(framing));
  ended_ = true;
  wire_.write({head, bodiless || request_.method == "HEAD" ? "" : response.body});
}

void Exchange::begin(const http::Response& head, std::optional<std::uint64_t> length) {
  left_ = length;
  chunked_ = !length && !is_old_;
  std::vector<http::Field> framing;
  if (length) {
    framing.push_back({"Content-Length", fmt::to_string(*length)});
  } else if (chunked_) {
    framing.push_back({"Transfer-Encoding", "chunked"});
  } else {
    keep_alive_ = false;
  }
  wire_.write({render(head, std::move(framing))});
}

void Exchange::account(std::uint64_t size) {
  HEARTH_ASSERT(begun_ && !ended_);
  if (!left_) return;
  HEARTH_ASSERT(size <= *left_);
  *left_ -= size;
}

void Exchange::write(std::string_view piece) {
  if (piece.empty()) return;  // an empty chunk would be the last
  account(piece.size());
  if (request_.method == "HEAD") return;
  if (chunked_) {
    wire_.write({fmt::format("{:x}\r\n", piece.size()), piece, "\r\n"});
  } else {
    wire_.write({piece});
  }
}

void Exchange::send_file(int fd, std::uint64_t offset, std::uint64_t size) {
  HEARTH_ASSERT(left_.has_value());
  account(size);
  if (request_.method != "HEAD") wire_.send_file(fd, offset, size);
}

bool Exchange::drain() {
  wire_.hurry();
  std::size_t drained = 0;
  try {
    for (std::string_view piece = read_piece(); !piece.empty(); piece = read_piece()) {
      drained += piece.size();
      if (drained <= kMostDrained) continue;
      abandon();
      return false;
    }
  } catch (const Error& error) {
    if (error.code() != Code::timeout) throw;
    abandon();
    return false;
  }
  return true;
}

void Exchange::end() {
  HEARTH_ASSERT(begun_ && !ended_ && left_.value_or(0) == 0);
  if (chunked_ && request_.method != "HEAD") wire_.write({"0\r\n\r\n"});
  wire_.let_go();
  // Not before: where the peer has left meanwhile, whoever reports that on the stream meets the
  // same error, and not one of ours.
  ended_ = true;
}

bool Exchange::finish() {
  wire_.let_go();  // what came before a failure
  if (!ended_ || !keep_alive_) return false;
  // A peer that still waits to be told to go on will not send its body.
  if (expects_continue_ && !decoder_.is_done()) return false;
  return drain();
}

}  // namespace hearth::serve
