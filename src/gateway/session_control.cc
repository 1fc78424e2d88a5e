// Requests for the control plane: collected whole, asked in this process, answered.
#include <sys/uio.h>

#include <utility>

#include "base/log.h"
#include "gateway/session.h"

namespace hearth::gateway {
namespace {

constexpr Refusal kTooLongBody{413, "the body is too long"};
constexpr Refusal kMalformedBody{400, "malformed body"};
constexpr Refusal kOtherExpectation{417, "the only expectation met here is 100-continue"};
constexpr Refusal kBrokenAnswer{500, "internal error"};

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

// The browser asks for a page, without the headers that would say whom it wants to talk to: for
// envd by E2B_SANDBOX_URL as well.
void Session::answer_cors_question(const http::HeadView& head) {
  status_ = 204;
  if (!up_.is_framed() || lane_.is_draining()) keeps_alive_ = false;
  answer(render_cors_answer(head.value("Access-Control-Request-Headers"), !keeps_alive_));
}

void Session::begin_question(const http::HeadView& head, const Target& target) {
  Shared& shared = lane_.shared();
  if (shared.control_requests.fetch_add(1) >= lane_.limits().control_requests) {
    shared.control_requests.fetch_sub(1);
    refuse(kBusy);
    return;
  }
  question_.emplace(head, target, peer_);
  const http::FieldView* expects = head.find("Expect");
  if (expects != nullptr && !http::equal_ignoring_case(expects->value, "100-continue")) {
    refuse(kOtherExpectation);
    return;
  }
  if (head.framing.kind == http::BodyKind::length &&
      head.framing.length > lane_.limits().control_body) {
    refuse(kTooLongBody);
    return;
  }
  if (!up_.is_framed() && !is_known(head)) {
    // What strangers send is not kept. They are told what they would be told without.
    keeps_alive_ = false;
    ask();
    return;
  }
  phase_ = Phase::asking;
  set_deadline(lane_.limits().control_body_time);
}

bool Session::is_known(const http::HeadView& head) const {
  const AccessRules& rules = lane_.shared().rules;
  return !rules.key_owner || !rules.key_owner(head.value("X-API-Key")).ns.empty();
}

// False: more is kept already than there is room for.
bool Session::count_kept() {
  Shared& shared = lane_.shared();
  const std::size_t now = question_->body_bytes();
  const std::size_t more = now - std::exchange(kept_bytes_, now);
  return shared.control_bytes.fetch_add(more) + more <= lane_.limits().control_bytes;
}

void Session::collect() {
  while (phase_ == Phase::asking) {
    account_.moved(question_->take_body(up_), 0);
    if (!count_kept()) {
      refuse(kBusy);
    } else if (question_->body_bytes() > lane_.limits().control_body) {
      refuse(kTooLongBody);
    } else if (question_->is_whole()) {
      ask();
    } else if (client_.has_ended()) {
      close();
    } else if (!client_.can_read()) {
      if (question_->owes_continue()) overflow_down_ = kContinue;
      flush_down();
      return;
    } else {
      read_body();
    }
  }
}

void Session::read_body() {
  const std::span<char> room = up_.room();
  if (room.empty()) {
    refuse(kMalformedBody);  // a chunk's size line that does not end
    return;
  }
  const Moved moved = client_.read(room);
  if (moved.state == Io::blocked) return;
  if (moved.state != Io::moved) {
    close();
    return;
  }
  up_.filled(moved.bytes);
  if (!up_.frame()) refuse(kMalformedBody);
}

void Session::ask() {
  phase_ = Phase::asked;
  set_deadline(lane_.limits().answer);
  up_.trim(false);
  auto answer = [mailbox = lane_.loop().mailbox(), session = weak_from_this(),
                 ticket = ++ticket_](http::Response response) {
    mailbox->post([session, ticket, response = std::move(response)] {
      const auto self = session.lock();
      if (!self || self->phase_ != Phase::asked || self->ticket_ != ticket) return;
      self->pass_answer(response);
      self->advance();
    });
  };
  lane_.shared().options.control(question_->take(), std::move(answer));
}

void Session::pass_answer(const http::Response& response) {
  if (lane_.is_draining()) keeps_alive_ = false;
  try {
    overflow_down_ += render_answer(response, is_head_, !keeps_alive_ && minor_ > 0);
  } catch (const Error& error) {
    log::error("answer a request", {{"why", error.what()}});
    refuse(kBrokenAnswer);
    return;
  }
  status_ = response.status;
  account_.first_byte();
  if (!is_head_) account_.moved(0, response.body.size());
  phase_ = Phase::telling;
  flush_answer();
}

void Session::flush_answer() {
  if (flush_down()) {
    finish_request();
  } else if (phase_ == Phase::telling) {
    set_deadline(lane_.limits().stalled);
  }
}

void Session::end_question() {
  if (!question_) return;
  question_.reset();
  lane_.shared().control_requests.fetch_sub(1);
  lane_.shared().control_bytes.fetch_sub(std::exchange(kept_bytes_, 0));
}

}  // namespace hearth::gateway
