// The events of one execution on their way to the client: one JSON object a line, in ASCII.
//
// What a cell writes to one stream in quick succession is one event. What is quick is sent in one:
// a cell that ends before anything had to be sent is answered with a complete response instead of a
// stream. After the client has left everything is dropped.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "interpreter/ascii_json.h"
#include "serve/exchange.h"

namespace hearth::interpreter {

class EventStream {
 public:
  // `exchange` must outlive the stream.
  explicit EventStream(serve::Exchange& exchange) : exchange_(exchange) {}

  // A piece of a line, in the end with its newline.
  void add(std::string_view text);
  void add_execution_count(std::uint32_t count);
  // At most one is kept: clients expect no second.
  void add_error(std::string_view name, std::string_view value, std::string_view traceback);
  // Held until something else is added or sent: more of the same kind makes no event of its own.
  void add_output(std::string_view kind, std::string_view text);

  // Sends what was added; blocks as long as the client does not read.
  void flush();
  // The same, without output that may still grow.
  void send_events();
  void keep_alive();
  // The last event, and the end of the response.
  void finish();

  bool has_events() const { return !unsent_.empty(); }
  bool holds_output() const { return !held_.empty(); }
  std::chrono::steady_clock::time_point holds_since() const { return held_since_; }
  bool client_left() const { return left_; }
  void set_client_left();
  int client_fd() const { return exchange_.fd(); }
  std::chrono::steady_clock::time_point last_sent() const { return last_sent_; }

 private:
  void add_text(std::string_view text);
  void close_output();

  serve::Exchange& exchange_;
  AsciiJson ascii_;
  std::string unsent_;
  std::string held_;  // output that is no event yet
  std::string held_kind_;
  std::chrono::steady_clock::time_point held_since_;
  bool left_ = false;
  bool has_error_ = false;
  std::chrono::steady_clock::time_point last_sent_ = std::chrono::steady_clock::now();
};

}  // namespace hearth::interpreter
