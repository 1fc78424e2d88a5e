#include "interpreter/event_stream.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_text.h"
#include "base/time_text.h"
#include "interpreter/answers.h"

namespace hearth::interpreter {
namespace {

// What is collected before it is sent: larger pieces gain nothing, and cost memory.
constexpr std::size_t kMostUnsent = std::size_t{128} << 10;

// How long the text of one event of output gets.
constexpr std::size_t kMostHeld = std::size_t{64} << 10;

}  // namespace

void EventStream::add(std::string_view text) {
  close_output();  // it came before
  add_text(text);
}

void EventStream::add_text(std::string_view text) {
  if (left_) return;
  ascii_.append(unsent_, text);
  if (unsent_.size() >= kMostUnsent) send_events();
}

void EventStream::add_execution_count(std::uint32_t count) {
  add(fmt::format("{{\"type\":\"number_of_executions\",\"execution_count\":{}}}\n", count));
}

void EventStream::add_error(std::string_view name, std::string_view value,
                            std::string_view traceback) {
  if (std::exchange(has_error_, true)) return;
  add(fmt::format("{{\"type\":\"error\",\"name\":{},\"value\":{},\"traceback\":{}}}\n",
                  json_quote(name), json_quote(value), json_quote(traceback)));
}

void EventStream::add_output(std::string_view kind, std::string_view text) {
  if (left_) return;
  if (kind != held_kind_) close_output();
  if (held_.empty()) {
    held_kind_ = kind;
    held_since_ = std::chrono::steady_clock::now();
  }
  held_ += text;
  if (held_.size() >= kMostHeld) close_output();
}

void EventStream::close_output() {
  if (held_.empty()) return;
  const std::string text = std::exchange(held_, {});
  add_text(fmt::format("{{\"type\":\"{}\",\"text\":{},\"timestamp\":\"{}\"}}\n", held_kind_,
                       json_quote(text), format_rfc3339(std::chrono::system_clock::now(), 6)));
}

void EventStream::set_client_left() {
  left_ = true;
  unsent_.clear();
  held_.clear();
  exchange_.abandon();
}

void EventStream::flush() {
  close_output();
  send_events();
}

void EventStream::send_events() {
  if (unsent_.empty() || left_) return;
  try {
    if (!exchange_.begun()) exchange_.begin(events_response());
    exchange_.write(unsent_);
    unsent_.clear();
    last_sent_ = std::chrono::steady_clock::now();
  } catch (const Error&) {
    set_client_left();
  }
}

void EventStream::keep_alive() {
  add("{\"type\":\"keepalive\"}\n");
  flush();
}

void EventStream::finish() {
  add("{\"type\":\"end_of_execution\"}\n");
  if (left_) return;
  if (exchange_.begun()) {
    flush();
    if (!left_) exchange_.end();
    return;
  }
  http::Response response = events_response();
  response.body = std::move(unsent_);
  exchange_.respond(response);
}

}  // namespace hearth::interpreter
