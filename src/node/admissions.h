// Answers for sandboxes that may reach hosts by name: each is held back until the sandbox may reach
// what it says. A thread of its own, because that takes the kernel; bounded, for all and for each.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "linux/fd.h"

namespace hearth::node {

class Admissions {
 public:
  using Admit = std::function<void(std::uint32_t client, const std::string& name,
                                   std::span<const std::uint32_t> answered)>;
  struct Answer {
    std::uint32_t client = 0;
    std::uint16_t port = 0;    // of a datagram's sender
    std::uint64_t stream = 0;  // 0: it was a datagram
    std::string name;
    std::vector<std::uint32_t> addresses;
    std::string message;
    std::string refusal;  // what is said instead where `admit` throws
  };

  explicit Admissions(Admit admit);
  Admissions(const Admissions&) = delete;
  Admissions& operator=(const Admissions&) = delete;
  ~Admissions() = default;

  // False where too many wait.
  bool submit(Answer answer);

  // Readable while some are ready to be sent.
  int ready_fd() const { return ready_.get(); }
  std::vector<Answer> take_ready();

 private:
  void run(const std::stop_token& stop);
  std::string admitted(const Answer& answer) const;

  const Admit admit_;
  linux::Fd ready_;
  std::mutex mutex_;  // guards what follows, down to the thread
  std::condition_variable_any news_;
  std::deque<Answer> waiting_;
  std::vector<Answer> done_;
  std::jthread thread_;
};

}  // namespace hearth::node
