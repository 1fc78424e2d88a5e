// The events of one execution on their way to the client: one JSON object a line, in ASCII.
//
// What is quick is sent in one: a cell that ends before anything had to be sent is answered with a
// complete response instead of a stream. After the client has left everything is dropped.
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
  void add_output(std::string_view kind, std::string_view text);

  // Sends what was added; blocks as long as the client does not read.
  void flush();
  void keep_alive();
  // The last event, and the end of the response.
  void finish();

  bool has_unsent() const { return !unsent_.empty(); }
  bool client_left() const { return left_; }
  void set_client_left();
  int client_fd() const { return exchange_.fd(); }
  std::chrono::steady_clock::time_point last_sent() const { return last_sent_; }

 private:
  serve::Exchange& exchange_;
  AsciiJson ascii_;
  std::string unsent_;
  bool left_ = false;
  bool has_error_ = false;
  std::chrono::steady_clock::time_point last_sent_ = std::chrono::steady_clock::now();
};

}  // namespace hearth::interpreter
