// From a head to a connection: whom it is for, whether it may, where that is.
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"
#include "gateway/rewrite.h"
#include "gateway/session.h"
#include "net/tls.h"
#include "net/workers.h"

namespace hearth::gateway {
namespace {

constexpr Refusal kNoControl{404, "no such path"};
constexpr Refusal kTooMany{429, "Too many connections to the sandbox"};
constexpr Refusal kNotItsAddress{502, "Not the sandbox's address"};

constexpr std::array<std::string_view, 7> kMethods = {"GET",    "HEAD",    "POST", "PUT",
                                                      "DELETE", "OPTIONS", "PATCH"};

std::string_view canonical(std::string_view method) {
  const auto* at = std::ranges::find(kMethods, method);
  return at != kMethods.end() ? *at : std::string_view("other");
}

// Of a browser, whether a page may ask.
bool is_cors_question(const http::HeadView& head) {
  return head.method == "OPTIONS" && head.find("Access-Control-Request-Method") != nullptr;
}

bool is_local(std::string_view peer) {
  return peer.starts_with("127.") || peer == "::1" || peer.empty();
}

}  // namespace

void Session::begin_request() {
  account_.begin();
  head_size_ = scanner_.size();
  http::HeadView& head = lane_.head();
  dialect_ = Dialect::control;
  id_.clear();
  signer_.clear();
  port_ = 0;
  status_ = 0;
  attempt_ = 0;
  is_head_ = is_browser_ = is_upgrade_ = keeps_alive_ = is_replay_ = false;
  has_response_ = has_response_bytes_ = is_upstream_reusable_ = is_up_dead_ = false;
  const auto problem =
      http::parse_request_head(up_.bytes().substr(0, head_size_), kHeadBytes, head);
  if (problem) {
    head_size_ = 0;
    refuse({problem->status, problem->message});
    return;
  }
  minor_ = head.minor;
  const std::string_view method = canonical(head.method);
  account_.set_method(method);
  is_head_ = head.method == "HEAD";
  is_idempotent_ = method != "POST" && method != "PATCH" && method != "other";
  is_upgrade_ = wants_upgrade(head);
  keeps_alive_ = head.minor > 0 && head.wants_keep_alive();
  if (!up_.begin_body(head_size_, head.framing)) {
    head_size_ = 0;
    refuse({400, "malformed body"});
    return;
  }
  decide(head, find_target(head));
}

void Session::decide_again() {
  lane_.release(*this);
  http::HeadView& head = lane_.head();
  // It was parsed before, from the same bytes.
  static_cast<void>(http::parse_request_head(up_.bytes().substr(0, head_size_), kHeadBytes, head));
  decide(head, find_target(head));
}

void Session::decide(const http::HeadView& head, const Target& target) {
  dialect_ = target.dialect;
  port_ = target.port;
  id_.assign(target.id);
  prefix_.assign(target.prefix);
  is_browser_ = is_browser(head.value("User-Agent"));
  account_.note(lane_.shared().rules, head, target);
  if (target.problem_status != 0) {
    route_.reset();
    refuse({target.problem_status, target.problem});
    return;
  }
  if (target.names_sandbox() || target.dialect == Dialect::signature) account_.enter();
  switch (target.dialect) {
    case Dialect::health:
      route_.reset();
      status_ = 200;
      if (!up_.is_framed()) keeps_alive_ = false;
      answer(render_answer(200, "application/json", R"({"status":"ok"})",
                           {.is_head = is_head_, .closes = !keeps_alive_}));
      return;
    case Dialect::control:
      route_.reset();
      account_.clear_space();
      if (is_cors_question(head)) {
        answer_cors_question(head);
      } else if (!lane_.shared().options.control) {
        refuse(kNoControl);
      } else {
        begin_question(head, target);
      }
      return;
    case Dialect::signature:
      if (is_cors_question(head)) {
        route_.reset();
        answer_cors_question(head);
      } else {
        decide_signed(head, target);
      }
      return;
    case Dialect::e2b:
    case Dialect::router:
      decide_sandbox(head, target);
      return;
  }
}

void Session::decide_sandbox(const http::HeadView& head, const Target& target) {
  if (const auto refusal = check_dialect(lane_.shared().rules, head, target, is_local(peer_))) {
    route_.reset();
    refuse(*refusal);
    return;
  }
  const RoutePtr before = route_;
  route_ = find_route(target);
  if (!route_) {
    // A watch may be a moment behind the answer that told the client of this id.
    account_.set_space(target.ns.empty() ? "-" : std::string(target.ns));
    const bool is_gone = target.dialect == Dialect::e2b && lane_.shared().table->is_gone(target.id);
    if (wait_ != Wait::unknown) lane_.meter().missed(is_gone);
    if (is_gone || wait_ == Wait::unknown || !lane_.hold(*this)) {
      refuse(kNotFound);
    } else {
      hold(Wait::unknown, lane_.limits().unknown);
    }
    return;
  }
  if (route_ != before || !account_.has_space()) account_.set_space(route_->key.ns);
  decide_route(head, target);
}

// Most requests on a connection are for one sandbox, of which there is nothing new.
RoutePtr Session::find_route(const Target& target) {
  const bool is_e2b = target.dialect == Dialect::e2b;
  if (route_ && !route_->is_superseded && route_->key.name == target.id &&
      (is_e2b ? route_->is_e2b : route_->key.ns == target.ns)) {
    return route_;
  }
  const Table& table = *lane_.shared().table;
  return is_e2b ? table.find_e2b(target.id) : table.find(target.ns, target.id);
}

void Session::decide_route(const http::HeadView& head, const Target& target) {
  if (!target.pod_ip.empty() &&
      std::ranges::find(route_->pod_ips, target.pod_ip) == route_->pod_ips.end()) {
    refuse(kNotItsAddress);
    return;
  }
  const auto refusal = check_access(lane_.shared().rules, head, target, *route_);
  account_.decided(!refusal);
  if (refusal) {
    refuse(*refusal);
    return;
  }
  switch (route_->state) {
    case RouteState::running:
      break;
    case RouteState::turning:
      if (lane_.hold(*this)) {
        hold(Wait::turning, lane_.limits().wake);
      } else {
        refuse(kBusy);
      }
      return;
    case RouteState::paused:
      if (!route_->wakes || !lane_.shared().wake) {
        refuse(kNotFound);
      } else if (!lane_.hold(*this)) {
        refuse(kBusy);
      } else {
        // Once for each request: one that was woken in vain is not worth a second try.
        const bool is_first = wait_ != Wait::waking;
        if (is_first) lane_.meter().woke();
        hold(Wait::waking, lane_.limits().wake);
        if (is_first && !lane_.shared().wake(route_->key)) {
          lane_.release(*this);
          refuse(kBusy);
        }
      }
      return;
  }
  if (!count_in()) {
    if (route_->is_superseded) {
      decide(head, target);
    } else {
      refuse(kTooMany);
    }
    return;
  }
  go(head, target);
}

void Session::hold(Wait wait, Duration patience) {
  const bool goes_on = wait_ == wait && deadline_ != 0;
  wait_ = wait;
  phase_ = Phase::held;
  if (!goes_on) set_deadline(patience);
  // What has changed between looking and waiting is not told again.
  const bool is_late = route_ && route_->is_superseded;
  if (wait != Wait::unknown && !is_late) return;
  const auto again = [session = weak_from_this(), ticket = ++ticket_] {
    const auto self = session.lock();
    if (!self || self->phase_ != Phase::held || self->ticket_ != ticket) return;
    self->decide_again();
    self->advance();
  };
  lane_.loop().after(is_late ? Duration(0) : patience, again);
}

// It is looked for once: who waits for its sandbox to wake knows whose it is.
void Session::decide_signed(const http::HeadView& head, const Target& target) {
  if (signer_.empty()) {
    find_signer(head, target);
    return;
  }
  id_ = signer_;
  route_ = lane_.shared().table->find_e2b(signer_);
  if (!route_) {
    refuse(kNotFound);
    return;
  }
  account_.set_space(route_->key.ns);
  decide_route(head, target);
}

void Session::find_signer(const http::HeadView& head, const Target& target) {
  route_.reset();  // of the request before
  auto signature = Signature::find(head.method, target.query);
  if (!signature) {
    refuse(kBadSignature);
    return;
  }
  const auto work = [session = weak_from_this(), &lane = lane_, ticket = ++ticket_,
                     signature = *std::move(signature)] {
    RoutePtr found = lane.shared().table->find_signer(signature);
    lane.post([session, ticket, found = std::move(found)] {
      const auto self = session.lock();
      if (!self || self->phase_ != Phase::held || self->ticket_ != ticket) return;
      if (found) {
        self->signer_ = found->key.name;
        self->wait_ = Wait::none;
        self->decide_again();
      } else {
        self->lane_.release(*self);
        self->refuse(kBadSignature);
      }
      self->advance();
    });
  };
  if (!lane_.hold(*this)) {
    refuse(kBusy);
    return;
  }
  hold(Wait::signature, lane_.limits().wake);
  if (!lane_.shared().signers->run(work)) {
    lane_.release(*this);
    refuse(kBusy);
  }
}

bool Session::count_in() {
  if (is_counted_) return true;
  Activity& activity = *route_->activity;
  const auto open = activity.open.fetch_add(1);
  is_counted_ = true;
  if (open >= lane_.limits().per_sandbox || route_->is_superseded) {
    count_out();
    return false;
  }
  const bool is_first = activity.last_milliseconds == 0;
  if (is_first && lane_.shared().options.urgent) urgent_ = lane_.shared().options.urgent();
  touch();
  return true;
}

void Session::count_out() {
  if (!is_counted_) return;
  urgent_.reset();
  touch();
  route_->activity->open.fetch_sub(1);
  is_counted_ = false;
}

void Session::touch() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  route_->activity->last_milliseconds.store(
      std::chrono::duration_cast<std::chrono::milliseconds>(now).count(),
      std::memory_order_relaxed);
}

UpstreamKey Session::upstream_key() const {
  return {.serial = route_->serial, .port = port_};
}

void Session::go(const http::HeadView& head, const Target& target) {
  wait_ = Wait::none;
  if (!is_replay_) upstream_ = lane_.upstreams().take(upstream_key());
  if (!upstream_) {
    dial();
    return;
  }
  upstream_->set_owner(*this);
  send_request(head, target);
}

void Session::dial() {
  phase_ = Phase::dialling;
  set_deadline(lane_.limits().connect);
  const auto arrival = [session = weak_from_this(), &lane = lane_,
                        ticket = ++ticket_](Dialled dialled) {
    const auto shared = std::make_shared<Dialled>(std::move(dialled));
    lane.post([session, ticket, shared] {
      const auto self = session.lock();
      if (!self || self->phase_ != Phase::dialling || self->ticket_ != ticket) return;
      self->after_dial(std::move(*shared));
      self->advance();
    });
  };
  Dialled made;
  switch (lane_.shared().ahead->take(upstream_key(), made, arrival)) {
    case Ahead::Found::made:
      after_dial(std::move(made));
      return;
    case Ahead::Found::coming:
      return;
    case Ahead::Found::nothing:
      break;
  }
  const auto work = [arrival, &shared = lane_.shared(), route = route_, port = port_] {
    arrival(shared.is_stopping ? Dialled() : shared.dialler->dial(*route, port));
  };
  // A namespace whose sandboxes do not answer leaves threads to others.
  if (!lane_.shared().dials->start(work, route_->key.ns)) refuse(kBusy);
}

void Session::after_dial(Dialled dialled) {
  if (dialled.state == DialState::refused || dialled.state == DialState::absent) {
    retry_dial(dialled.state);
    return;
  }
  try {
    upstream_ = std::make_unique<Upstream>(std::move(dialled.socket),
                                           dialled.state == DialState::connecting, upstream_key());
    const bool is_https =
        std::ranges::find(route_->https_ports, port_) != route_->https_ports.end();
    if (is_https) {
      upstream_->start_tls(net::native_handle(*lane_.shared().upstream_tls), TlsRole::client);
    }
    upstream_->join(lane_.loop(), *this);
  } catch (const Error& error) {
    log::warning("use a connection to a sandbox", {{"why", error.what()}});
    refuse(kBusy);
    return;
  }
  http::HeadView& head = lane_.head();
  static_cast<void>(http::parse_request_head(up_.bytes().substr(0, head_size_), kHeadBytes, head));
  Target target = find_target(head);
  target.port = port_;
  send_request(head, target);
}

void Session::retry_dial(DialState state) {
  if (attempt_ >= std::size(kDialPauses)) {
    account_.failed("dial");
    refuse(state == DialState::refused ? kPortClosed : kNotFound);
    return;
  }
  phase_ = Phase::dialling;
  const Duration pause = kDialPauses[attempt_++];
  set_deadline(pause + lane_.limits().connect);
  lane_.meter().retried();
  lane_.loop().after(pause, [session = weak_from_this(), ticket = ++ticket_] {
    const auto self = session.lock();
    if (!self || self->phase_ != Phase::dialling || self->ticket_ != ticket) return;
    self->dial();
    self->advance();
  });
}

void Session::send_request(const http::HeadView& head, const Target& target) {
  const RequestContext context{.target = &target,
                               .route = route_.get(),
                               .peer = peer_,
                               .is_tls = client_.is_tls(),
                               .is_upgrade = is_upgrade_};
  const std::string_view text = rewrite_request(head, context, lane_.scratch());
  phase_ = Phase::exchange;
  up_.rewind();
  overflow_up_.clear();
  is_up_dead_ = false;
  write_error_ = 0;
  response_scanner_ = {};
  interims_ = 0;
  down_.clear();
  flush(*upstream_, up_, overflow_up_, text, is_up_dead_);
}

}  // namespace hearth::gateway
