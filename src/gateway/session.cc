// The connection: reading heads, answering ourselves, deadlines, the end.
#include "gateway/session.h"

#include <sys/uio.h>

#include <utility>

namespace hearth::gateway {
namespace {

// Steps in a row for one session, before others get their turn.
constexpr int kTurns = 64;

constexpr Refusal kTooLong{431, "too many or too long header fields"};
constexpr Refusal kMalformed{400, "malformed HTTP"};
constexpr Refusal kTooSlow{408, "the request took too long"};
constexpr Refusal kInTransition{409, "The sandbox is in transition"};
constexpr Refusal kNoAnswer{504, "The sandbox did not answer in time"};
constexpr Refusal kNoControlAnswer{504, "There was no answer in time"};

}  // namespace

Session::Session(Lane& lane, linux::Fd socket, std::string peer, ssl_ctx_st* tls)
    : lane_(lane),
      client_(std::move(socket), false),
      peer_(std::move(peer)),
      up_(lane.buffers()),
      down_(lane.buffers()),
      account_(lane.meter(), lane.access_lines()) {
  if (tls != nullptr) client_.start_tls(tls, TlsRole::server);
}

Session::~Session() = default;

void Session::start() {
  client_.join(lane_.loop(), *this);
  set_deadline(lane_.limits().first_byte);
}

void Session::on_ready(Endpoint&) {
  advance();
}

void Session::advance() {
  for (int turn = 0; turn < kTurns; ++turn) {
    const Phase before = phase_;
    switch (phase_) {
      case Phase::head:
        if (read_head()) {
          begin_request();
        } else if (phase_ == Phase::head) {
          return;
        }
        continue;  // a request that was answered at once may have another behind it
      case Phase::held:
      case Phase::dialling:
      case Phase::asked:
        if (client_.has_ended()) close();
        break;
      case Phase::exchange:
        pump();
        break;
      case Phase::tunnel:
        pump_tunnel();
        break;
      case Phase::asking:
        collect();
        break;
      case Phase::telling:
        flush_answer();
        break;
      case Phase::linger:
        linger();
        break;
      case Phase::over:
        return;
    }
    if (phase_ == before) return;
  }
  lane_.again(*this);
}

bool Session::read_head() {
  while (true) {
    if (!up_.is_empty()) {
      const auto found = scanner_.scan(up_.bytes());
      if (found == http::HeadScanner::Found::bad) {
        refuse(kMalformed);
        return false;
      }
      if (scanner_.size() > kHeadBytes ||
          (up_.bytes().size() >= kHeadBytes && found == http::HeadScanner::Found::more)) {
        refuse(kTooLong);
        return false;
      }
      if (found == http::HeadScanner::Found::complete) return true;
    }
    if (!client_.can_read()) break;
    const bool is_first = up_.is_empty();
    const Moved moved = client_.read(up_.room());
    if (moved.state == Io::ended || moved.state == Io::failed) {
      close();
      return false;
    }
    if (moved.state == Io::blocked) break;
    up_.filled(moved.bytes);
    if (is_first) {
      lane_.set_idle(*this, false);
      set_deadline(lane_.limits().head);
    }
  }
  up_.trim(true);
  return false;
}

void Session::set_deadline(Duration patience) {
  deadline_ =
      lane_.loop().now() + std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
}

void Session::check_deadline(std::int64_t now) {
  urgent_.reset();  // an upload may take hours to be answered
  if (deadline_ == 0 || now < deadline_) return;
  deadline_ = 0;
  switch (phase_) {
    case Phase::head:
      if (up_.is_empty()) {
        close();
      } else {
        refuse(kTooSlow);
      }
      break;
    case Phase::held:
      lane_.release(*this);
      refuse(wait_ == Wait::turning ? kInTransition : kNotFound);
      break;
    case Phase::dialling:
      refuse(kPortClosed);
      break;
    case Phase::exchange:
      account_.failed("timeout");
      if (!has_response_) {
        refuse(kNoAnswer);
      } else {
        close(true);
      }
      break;
    case Phase::asking:
      refuse(kTooSlow);
      break;
    case Phase::asked:
      refuse(kNoControlAnswer);
      break;
    case Phase::telling:
      close(true);
      break;
    case Phase::tunnel:
    case Phase::linger:
    case Phase::over:
      close();
      break;
  }
  advance();
}

void Session::refuse(const Refusal& refusal) {
  account_.begin();  // of a head that did not come whole
  status_ = refusal.status;
  drop_upstream();
  if (!overflow_down_.empty()) {  // inside another answer
    close(true);
    return;
  }
  // A body that has not come yet is not waited for.
  const bool is_head_whole = head_size_ > 0;
  if (!is_head_whole || !up_.is_framed() || lane_.is_draining()) keeps_alive_ = false;
  const RefusalContext context{.dialect = dialect_,
                               .id = id_,
                               .port = port_,
                               .is_browser = is_browser_,
                               .is_head = is_head_,
                               .closes = !keeps_alive_};
  answer(render_refusal(refusal, context));
}

// Small enough for any socket's buffer; a client for which it is not has been taking nothing for
// long.
void Session::answer(std::string text) {
  const iovec part{.iov_base = text.data(), .iov_len = text.size()};
  const Moved moved = client_.write({&part, 1});
  if (moved.state != Io::moved || moved.bytes != text.size()) {
    close();
    return;
  }
  finish_request();
}

// What was asked is answered: the next request, or the end.
void Session::finish_request() {
  count_out();
  end_question();
  end_account(false);
  wait_ = Wait::none;
  ++ticket_;  // what an errand brings now is for nobody
  if (!keeps_alive_ || lane_.is_draining()) {
    begin_linger();
    return;
  }
  head_size_ = 0;
  scanner_ = {};
  response_scanner_ = {};
  dialect_ = Dialect::control;
  id_.clear();
  port_ = 0;
  is_head_ = is_browser_ = keeps_alive_ = false;
  down_.clear();
  up_.begin_next();
  phase_ = Phase::head;
  if (up_.is_empty()) {
    lane_.set_idle(*this, true);
    set_deadline(lane_.limits().idle);
  } else {
    set_deadline(lane_.limits().head);
  }
}

void Session::end_account(bool is_cut) {
  // The route of an earlier request may still be here, for the next one.
  const bool is_its_route = route_ && route_->key.name == id_;
  account_.end({.dialect = dialect_,
                .route = is_its_route ? route_.get() : nullptr,
                .id = id_,
                .port = port_,
                .status = status_,
                .peer = peer_,
                .is_cut = is_cut});
}

// Closing with bytes unread would make the kernel destroy our last ones on their way (RFC 9112
// section 9.6).
void Session::begin_linger() {
  up_.clear();
  down_.clear();
  client_.finish();
  phase_ = Phase::linger;
  lingered_ = 0;
  set_deadline(kLingerTime);
}

void Session::linger() {
  while (client_.can_read()) {
    const Moved moved = client_.read(lane_.scratch());
    if (moved.state == Io::blocked) return;
    lingered_ += moved.bytes;
    if (moved.state != Io::moved || lingered_ > kLingerBytes) {
      close();
      return;
    }
  }
}

void Session::look_again(const model::Key& key, const std::optional<Refusal>& refusal) {
  if (phase_ != Phase::held) return;
  const bool is_mine = route_ ? route_->key == key : id_ == key.name;
  if (!is_mine || wait_ == Wait::signature) return;
  if (wait_ == Wait::unknown && !lane_.shared().table->find(key.ns, key.name)) return;
  if (refusal && wait_ == Wait::waking) {
    lane_.release(*this);
    refuse(*refusal);
  } else if (!refusal) {
    decide_again();
  }
  advance();
}

void Session::cut_off(const Route& route) {
  if (!is_counted_ || !route_ || route_->serial != route.serial || route_->key != route.key) return;
  if (phase_ == Phase::exchange && !has_response_) {
    refuse(kNotFound);
    advance();
  } else if (phase_ == Phase::dialling) {
    // It is decided anew what becomes of it: the sandbox may be one that wakes.
    count_out();
    decide_again();
    advance();
  } else {
    // Without a last chunk: SDKs tell an end from a break by it.
    close(down_.ends_with_connection());
  }
}

void Session::drain() {
  if (phase_ == Phase::head && up_.is_empty()) close();
}

void Session::close(bool reset) {
  if (phase_ == Phase::over) return;
  if (phase_ == Phase::held) lane_.release(*this);
  const bool is_cut = phase_ != Phase::tunnel || !up_ended_ || !down_ended_;
  phase_ = Phase::over;
  drop_upstream();
  count_out();
  end_question();
  end_account(is_cut);
  up_.clear();
  down_.clear();
  client_.close(reset);
  lane_.bury(*this);
}

}  // namespace hearth::gateway
