// Many kept connections to one port, driven by one thread: a client that leaves the processors to
// whom it measures. Just enough HTTP to know where an answer ends.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "bench/process.h"
#include "linux/fd.h"

namespace hearth::bench {

struct Exchange {
  std::string request;
  // What is waited for: the clock stops where this comes in the answer; empty: at its end.
  std::string_view stop_at = {};
};

class Crowd {
 public:
  Crowd(std::uint16_t port, unsigned count);

  unsigned size() const { return static_cast<unsigned>(members_.size()); }

  // What one of them sends next, after an answer with this body (chunks as they came; empty: its
  // first); nothing: it is done.
  using Next = std::function<std::optional<Exchange>(unsigned index, std::string_view body)>;

  // The first `count` all begin at once. For each: microseconds from before its first request until
  // its last answer has come to where the clock stops. Throws Error: internal for any status but
  // 2xx, timeout when nothing comes for kPatience.
  std::vector<double> talk(unsigned count, const Next& next);

  // All send this again and again: microseconds of each answer.
  std::vector<double> load(const std::string& request, Duration time);

 private:
  struct Member {
    linux::Fd socket;
    std::string buffer;  // of the answer, as far as it has come
    std::string_view stop_at;
    Moment begin;
    std::optional<Moment> stopped;
  };
  // One answer has come, whole. False: this member is done.
  using OnAnswer = std::function<bool(unsigned index, std::string_view body)>;

  void send(Member& member, std::string_view request);
  bool receive(unsigned index, const OnAnswer& on_answer);
  void wait(unsigned waiting, const OnAnswer& on_answer);

  std::vector<Member> members_;
  linux::Fd epoll_;
};

// Where an answer that begins `bytes` ends and its body begins; nothing: there is more to come.
// Throws Error(internal) for what is no answer, or says anything but 2xx.
struct AnswerExtent {
  std::size_t body = 0;
  std::size_t end = 0;
};
std::optional<AnswerExtent> find_answer(std::string_view bytes);

}  // namespace hearth::bench
