// A client's connection and what it asks for, one request after the other.
//
//   head ──► (held) ──► dialling ──► exchange ──► head, or linger, or over
//     │                                 └──► tunnel, after a 101
//     └──► asking ──► asked ──► telling ──► the same, for the control plane
//
// Driven by events: advance() does whatever is possible now and returns. Between events nothing is
// kept but the bytes that one side has sent and the other not yet taken, in at most two buffers;
// and requests to the control plane, whole.
//
// A long header: one state that four sources share.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/account.h"
#include "gateway/dialler.h"
#include "gateway/endpoint.h"
#include "gateway/lane.h"
#include "gateway/passage.h"
#include "gateway/question.h"
#include "gateway/refusal.h"
#include "gateway/route.h"
#include "gateway/target.h"
#include "gateway/upstreams.h"
#include "http/head_view.h"

namespace hearth::gateway {

class Session final : public EndpointOwner, public std::enable_shared_from_this<Session> {
 public:
  Session(Lane& lane, linux::Fd socket, std::string peer, ssl_ctx_st* tls);
  ~Session() override;

  void start();
  void advance();
  void on_ready(Endpoint& endpoint) override;
  void check_deadline(std::int64_t now);
  // News of a sandbox, for those who wait for them.
  void look_again(const model::Key& key, const std::optional<Refusal>& refusal);
  // Ends it inside whatever it is doing with that sandbox.
  void cut_off(const Route& route);
  // No request after this one: the lane is draining.
  void drain();
  void close(bool reset = false);

 private:
  friend class Lane;
  enum class Phase { head, held, dialling, exchange, tunnel, asking, asked, telling, linger, over };
  // What a held request waits for.
  enum class Wait { none, unknown, turning, waking, signature };

  // --- session.cc: the connection.
  bool read_head();
  void set_deadline(Duration patience);
  void clear_deadline() { deadline_ = 0; }
  void refuse(const Refusal& refusal);
  void answer(std::string text);
  void finish_request();
  void end_account(bool is_cut);
  void begin_linger();
  void linger();

  // --- session_request.cc: from a head to a connection.
  void begin_request();
  void decide(const http::HeadView& head, const Target& target);
  void decide_sandbox(const http::HeadView& head, const Target& target);
  void decide_again();
  void decide_route(const http::HeadView& head, const Target& target);
  RoutePtr find_route(const Target& target);
  void decide_signed(const http::HeadView& head, const Target& target);
  void find_signer(const http::HeadView& head, const Target& target);
  void hold(Wait wait, Duration patience);
  void go(const http::HeadView& head, const Target& target);
  bool count_in();
  void count_out();
  void dial();
  void after_dial(Dialled dialled);
  void retry_dial(DialState state);
  void send_request(const http::HeadView& head, const Target& target);
  UpstreamKey upstream_key() const;

  // --- session_control.cc: the control plane.
  void answer_cors_question(const http::HeadView& head);
  void begin_question(const http::HeadView& head, const Target& target);
  bool is_known(const http::HeadView& head) const;
  bool count_kept();
  void collect();
  void read_body();
  void ask();
  void pass_answer(const http::Response& response);
  void flush_answer();
  void end_question();

  // --- session_exchange.cc: bytes.
  void pump();
  bool pump_up();
  bool pump_down();
  bool flush_up();
  bool flush_down();
  bool flush(Endpoint& to, Passage& passage, std::string& overflow, std::string_view head,
             bool& has_failed);
  bool read_response();
  bool begin_response();
  bool pass_interim(const http::HeadView& head, std::size_t size);
  void begin_tunnel(const http::HeadView& head, std::size_t size);
  void pump_tunnel();
  bool pass(Endpoint& from, Endpoint& to, Passage& passage, std::string& overflow, bool& has_ended);
  void upstream_failed(int error);
  void end_exchange();
  void settle();
  void drop_upstream();
  void touch();

  Lane& lane_;
  Endpoint client_;
  const std::string peer_;
  UpstreamPtr upstream_;
  Passage up_;
  Passage down_;
  // Of a head that did not go out at once.
  std::string overflow_up_;
  std::string overflow_down_;
  http::HeadScanner scanner_;
  http::HeadScanner response_scanner_;
  std::list<std::shared_ptr<Session>>::iterator place_;  // in one of the lane's lists

  Phase phase_ = Phase::head;
  Wait wait_ = Wait::none;
  std::int64_t deadline_ = 0;  // of Loop::now(); 0: none
  std::uint64_t ticket_ = 0;   // of the errand that is waited for
  std::size_t attempt_ = 0;    // to connect
  std::size_t lingered_ = 0;
  int write_error_ = 0;

  // Of the request at hand.
  RoutePtr route_;
  std::optional<Question> question_;  // to the control plane
  Account account_;
  std::shared_ptr<void> urgent_;  // GatewayOptions::urgent
  std::size_t head_size_ = 0;
  std::uint16_t port_ = 0;
  unsigned status_ = 0;
  int minor_ = 1;
  Dialect dialect_ = Dialect::control;
  std::string id_;      // that was asked for
  std::string signer_;  // of a signed link: whose token made it, once that is known
  std::string prefix_;  // Target::prefix
  unsigned interims_ = 0;
  bool is_idempotent_ = false;
  bool is_head_ = false;
  bool is_browser_ = false;
  bool is_upgrade_ = false;
  bool keeps_alive_ = false;
  bool is_counted_ = false;
  bool is_replay_ = false;
  bool has_response_ = false;        // its head was passed on
  bool has_response_bytes_ = false;  // some of it came
  bool is_upstream_reusable_ = false;
  bool is_up_dead_ = false;  // the sandbox takes no more
  bool up_ended_ = false;    // of a tunnel
  bool down_ended_ = false;
  bool is_idle_ = false;        // in which of them place_ is
  std::size_t kept_bytes_ = 0;  // of the question, as they are counted for all
};

}  // namespace hearth::gateway
