// Bytes between a client and a sandbox.
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <utility>

#include "gateway/rewrite.h"
#include "gateway/session.h"

namespace hearth::gateway {
namespace {

// Reads and writes in a row for one session, before others get their turn.
constexpr int kTurns = 16;

// 100 once, 103 a few times, 102 every now and then: more than this is no answer on its way.
constexpr unsigned kMostInterims = 1000;

constexpr Refusal kBadAnswer{502, "The sandbox did not answer as HTTP has it"};

}  // namespace

// Writes `head` (or what is left of the last one) and what is ready of the body, in one call.
// False: the socket takes no more now, or never.
bool Session::flush(Endpoint& to, Passage& passage, std::string& overflow, std::string_view head,
                    bool& has_failed) {
  if (head.empty()) head = overflow;
  while (!head.empty() || !passage.ready().empty()) {
    if (has_failed) return false;
    const std::string_view body = passage.ready();
    std::array<iovec, 2> parts{};
    std::size_t count = 0;
    if (!head.empty()) {
      parts[count++] = {.iov_base = const_cast<char*>(head.data()), .iov_len = head.size()};
    }
    if (!body.empty()) {
      parts[count++] = {.iov_base = const_cast<char*>(body.data()), .iov_len = body.size()};
    }
    Moved moved;
    if (to.can_write()) moved = to.write({parts.data(), count});
    if (moved.state == Io::moved) {
      const std::size_t of_head = std::min(moved.bytes, head.size());
      head.remove_prefix(of_head);
      const std::size_t of_body = moved.bytes - of_head;
      passage.sent(of_body);
      if (&passage == &up_)
        account_.moved(of_body, 0);
      else
        account_.moved(0, of_body);
      continue;
    }
    has_failed = moved.state == Io::failed || moved.state == Io::ended;
    if (has_failed) {
      write_error_ = moved.error;
      overflow.clear();
    } else {
      overflow = std::string(head);
    }
    return false;
  }
  overflow.clear();
  return true;
}

bool Session::flush_up() {
  return flush(*upstream_, up_, overflow_up_, {}, is_up_dead_);
}

bool Session::flush_down() {
  bool has_failed = false;
  const bool is_done = flush(client_, down_, overflow_down_, {}, has_failed);
  if (has_failed) close();
  return is_done;
}

void Session::pump() {
  if (client_.has_ended()) {
    // Nobody is left to answer; the sandbox sees that by our leaving.
    close();
    return;
  }
  for (int turn = 0; turn < kTurns; ++turn) {
    const bool went_up = pump_up();
    if (phase_ != Phase::exchange) return;
    const bool went_down = pump_down();
    if (phase_ != Phase::exchange) return;
    if (!went_up && !went_down) {
      settle();
      return;
    }
  }
  lane_.again(*this);
}

// Whether anything moved.
bool Session::pump_up() {
  if (is_up_dead_) return false;
  if (!flush_up()) return false;
  if (up_.is_framed()) return false;
  if (!client_.can_read()) return false;
  const std::span<char> room = up_.room();
  if (room.empty()) return false;  // a chunk's size line that does not end
  const Moved moved = client_.read(room);
  if (moved.state == Io::blocked) return false;
  if (moved.state != Io::moved) {
    close();
    return false;
  }
  up_.filled(moved.bytes);
  if (!up_.frame()) {
    // What the sandbox has of it is no whole message, and never will be.
    close();
    return false;
  }
  flush_up();
  return true;
}

bool Session::pump_down() {
  if (!flush_down()) return false;
  if (has_response_ && down_.is_framed()) {
    end_exchange();
    return true;
  }
  // Heads that came together with an interim answer, and had to wait until the client took that.
  if (!has_response_ && !down_.is_empty() && response_scanner_.size() == 0) {
    read_response();
    if (phase_ != Phase::exchange || has_response_ || !overflow_down_.empty()) return true;
  }
  if (!upstream_->can_read()) return false;
  if (has_response_) down_.trim(false);
  const std::span<char> room = down_.room();
  if (room.empty()) {
    close(true);
    return false;
  }
  const Moved moved = upstream_->read(room);
  switch (moved.state) {
    case Io::blocked:
      return false;
    case Io::failed:
      upstream_failed(moved.error);
      return false;
    case Io::ended:
      if (has_response_ && down_.ends_with_connection()) {
        end_exchange();
      } else {
        upstream_failed(0);
      }
      return false;
    case Io::moved:
      break;
  }
  down_.filled(moved.bytes);
  has_response_bytes_ = true;
  return read_response();
}

bool Session::read_response() {
  if (has_response_) {
    if (!down_.frame()) {
      close(true);
      return false;
    }
    if (!flush_down()) return true;
    if (down_.is_framed()) end_exchange();
    return true;
  }
  while (!has_response_ && phase_ == Phase::exchange && !down_.is_empty()) {
    constexpr std::string_view kBegin = "HTTP/1.";
    const std::string_view bytes = down_.bytes();
    const auto found = response_scanner_.scan(bytes);
    const bool is_http = bytes.substr(0, kBegin.size()) == kBegin.substr(0, bytes.size());
    const bool is_long = response_scanner_.size() > kHeadBytes ||
                         (found == http::HeadScanner::Found::more && bytes.size() >= kHeadBytes);
    if (!is_http || is_long || found == http::HeadScanner::Found::bad) {
      account_.failed("other");
      refuse(kBadAnswer);
      return false;
    }
    if (found == http::HeadScanner::Found::more) return true;
    if (!begin_response()) return false;
  }
  return true;
}

// A whole head has come. False: that was the end of it.
bool Session::begin_response() {
  const std::size_t size = response_scanner_.size();
  http::HeadView& head = lane_.head();
  const auto problem = http::parse_response_head(down_.bytes().substr(0, size), is_head_, head);
  const bool is_switch = head.status == 101;
  const bool is_unreadable = head.framing.kind == http::BodyKind::chunked && minor_ == 0;
  if (problem || (is_switch && !is_upgrade_) || is_unreadable) {
    account_.failed("other");
    refuse(kBadAnswer);
    return false;
  }
  if (is_switch) {
    begin_tunnel(head, size);
    return false;
  }
  if (head.status < 200) {
    return pass_interim(head, size);
  }
  status_ = head.status;
  has_response_ = true;
  account_.first_byte();
  const bool is_request_done = up_.is_framed() && up_.ready().empty() && overflow_up_.empty();
  const bool ends_with_connection = head.framing.kind == http::BodyKind::until_end;
  if (!is_request_done || ends_with_connection || lane_.is_draining()) keeps_alive_ = false;
  is_upstream_reusable_ = is_request_done && !ends_with_connection && head.minor > 0 &&
                          minor_ > 0 && head.wants_keep_alive();
  if (!down_.begin_body(size, head.framing)) {
    refuse(kBadAnswer);
    return false;
  }
  const std::string_view text = rewrite_response(
      head, {.closes = !keeps_alive_ && minor_ > 0, .prefix = prefix_}, lane_.scratch());
  bool has_failed = false;
  const bool is_flushed = flush(client_, down_, overflow_down_, text, has_failed);
  if (has_failed) {
    close();
    return false;
  }
  if (is_flushed && down_.is_framed()) end_exchange();
  return phase_ == Phase::exchange;
}

// 100 Continue and its like: passed on, and the answer is still to come. False: nothing more is to
// be read for now, or ever.
bool Session::pass_interim(const http::HeadView& head, std::size_t size) {
  if (++interims_ > kMostInterims) {
    account_.failed("other");
    refuse(kBadAnswer);
    return false;
  }
  const std::string_view text = rewrite_response(head, {.prefix = prefix_}, lane_.scratch());
  static_cast<void>(down_.begin_body(size, {}));
  bool has_failed = false;
  if (minor_ > 0) flush(client_, down_, overflow_down_, text, has_failed);
  if (has_failed) {
    close();
    return false;
  }
  down_.begin_next();
  response_scanner_ = {};
  // What the client has not taken yet comes before the next head.
  return overflow_down_.empty();
}

void Session::begin_tunnel(const http::HeadView& head, std::size_t size) {
  status_ = 101;
  has_response_ = true;
  keeps_alive_ = false;
  phase_ = Phase::tunnel;
  up_ended_ = down_ended_ = false;
  const std::string_view text =
      rewrite_response(head, {.is_upgrade = true, .prefix = prefix_}, lane_.scratch());
  static_cast<void>(down_.begin_body(size, {}));
  down_.begin_raw();
  up_.begin_raw();
  bool has_failed = false;
  flush(client_, down_, overflow_down_, text, has_failed);
  if (has_failed) close();
}

// One direction of a tunnel. Whether anything moved.
bool Session::pass(Endpoint& from, Endpoint& to, Passage& passage, std::string& overflow,
                   bool& has_ended) {
  bool has_failed = false;
  if (!flush(to, passage, overflow, {}, has_failed)) {
    if (has_failed) close(true);
    return false;
  }
  passage.trim(false);
  if (has_ended || !from.can_read()) return false;
  const Moved moved = from.read(passage.room());
  switch (moved.state) {
    case Io::blocked:
      return false;
    case Io::failed:
      close(true);
      return false;
    case Io::ended:
      has_ended = true;
      to.finish();
      return true;
    case Io::moved:
      break;
  }
  passage.filled(moved.bytes);
  static_cast<void>(passage.frame());
  flush(to, passage, overflow, {}, has_failed);
  if (has_failed) close(true);
  return true;
}

void Session::pump_tunnel() {
  for (int turn = 0; turn < kTurns; ++turn) {
    const bool went_up = pass(client_, *upstream_, up_, overflow_up_, up_ended_);
    if (phase_ != Phase::tunnel) return;
    const bool went_down = pass(*upstream_, client_, down_, overflow_down_, down_ended_);
    if (phase_ != Phase::tunnel) return;
    if (up_ended_ && down_ended_ && up_.ready().empty() && down_.ready().empty()) {
      close();
      return;
    }
    if (!went_up && !went_down) {
      settle();
      return;
    }
  }
  lane_.again(*this);
}

void Session::upstream_failed(int error) {
  if (has_response_) {
    close(down_.ends_with_connection());
    return;
  }
  if (write_error_ != 0) error = write_error_;  // told once, and first to whom it was
  const bool is_kept = upstream_->is_kept;
  const bool is_fresh = !has_response_bytes_;
  drop_upstream();
  // The sandbox closed a kept connection while the request was on its way; what may be done twice
  // is sent once more.
  if (is_fresh && is_kept && is_idempotent_ && !is_replay_ && up_.is_whole() && up_.is_framed()) {
    is_replay_ = true;
    dial();
    return;
  }
  if (is_fresh && !is_kept && error == ECONNREFUSED && up_.is_whole()) {
    retry_dial(DialState::refused);
    return;
  }
  account_.failed(error == 0 ? "eof" : "other");
  refuse(kBadAnswer);
}

void Session::drop_upstream() {
  if (!upstream_) return;
  upstream_->close();
  lane_.bury(std::move(upstream_));
}

void Session::end_exchange() {
  if (!down_.ready().empty() || !overflow_down_.empty()) return;
  const bool is_clean = is_upstream_reusable_ && !down_.has_more() && !is_up_dead_ &&
                        !upstream_->has_ended() && upstream_->can_write();
  if (is_clean) {
    lane_.upstreams().keep(std::move(upstream_), lane_.loop().now());
  } else {
    drop_upstream();
  }
  finish_request();
}

// Nothing can be done now: what is waited for, and how long.
void Session::settle() {
  const Limits& limits = lane_.limits();
  const bool is_client_slow = !down_.ready().empty() || !overflow_down_.empty();
  if (is_counted_) touch();
  if (has_response_) urgent_.reset();
  if (phase_ == Phase::tunnel) {
    up_.trim(false);
    down_.trim(false);
    if (is_client_slow) {
      set_deadline(limits.stalled);
    } else {
      clear_deadline();
    }
    return;
  }
  if (!upstream_->is_connected()) {
    set_deadline(limits.connect);
  } else if (is_client_slow || !up_.is_framed()) {
    set_deadline(limits.stalled);
  } else if (!has_response_) {
    set_deadline(limits.answer);
  } else {
    clear_deadline();
  }
  // A request on a kept connection may have to be sent again.
  const bool may_replay =
      !has_response_bytes_ && (upstream_->is_kept || !upstream_->is_connected());
  up_.trim(may_replay && up_.is_whole());
  if (has_response_) down_.trim(false);
}

}  // namespace hearth::gateway
