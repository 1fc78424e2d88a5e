// What is told of a request when it is over: numbers to the meter, and a line to the access log
// where one is kept.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "gateway/access.h"
#include "gateway/access_log.h"
#include "gateway/meter.h"
#include "gateway/route.h"
#include "gateway/target.h"
#include "http/head_view.h"

namespace hearth::gateway {

// How it ended, and what it was for by then.
struct Ending {
  Dialect dialect = Dialect::control;
  const Route* route = nullptr;
  std::string_view id;  // that was asked for
  std::uint16_t port = 0;
  unsigned status = 0;  // 0: there was no answer
  std::string_view peer;
  bool is_cut = false;
};

class Account {
 public:
  // `lines`: null where no log is kept. Both must outlive it.
  Account(Meter& meter, AccessLines* lines) : meter_(meter), lines_(lines) {}

  // All that has come is its head, or what should have been one. Nothing if it has begun.
  void begin();
  void set_method(std::string_view method) { method_ = method; }
  // For the log: who asks for what. Looks once.
  void note(const AccessRules& rules, const http::HeadView& head, const Target& target);
  // It is for a sandbox, and under way until it ends.
  void enter();
  // In which namespace that is; "-" where nobody knows.
  void set_space(const std::string& ns) { space_ = meter_.space(ns); }
  void clear_space() { space_ = nullptr; }
  bool has_space() const { return space_ != nullptr; }

  void decided(bool is_granted) { meter_.decided(space_, is_granted); }
  void failed(std::string_view reason) { meter_.failed(space_, reason); }
  void first_byte();
  // Bytes of bodies, passed on.
  void moved(std::uint64_t up, std::uint64_t down);
  // Nothing if it has not begun, or has ended.
  void end(const Ending& ending);

 private:
  struct Note {
    std::string path;
    KeyOwner owner;
  };
  void log(const Ending& ending, unsigned status, Duration took);

  Meter& meter_;
  AccessLines* const lines_;
  Meter::Space* space_ = nullptr;
  std::chrono::steady_clock::time_point began_;
  std::string_view method_;  // one of the usual, or "other"; empty: none was understood
  std::uint64_t up_ = 0;
  std::uint64_t down_ = 0;
  std::unique_ptr<Note> note_;
  bool has_begun_ = false;
  bool is_in_flight_ = false;
};

}  // namespace hearth::gateway
