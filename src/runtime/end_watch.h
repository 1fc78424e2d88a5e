// Notices sandboxes that end by themselves: one thread, which waits on every pidfd. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <thread>

#include "base/guarded.h"
#include "linux/fd.h"
#include "linux/pidfd.h"

namespace hearth::runtime {

class EndWatch {
 public:
  EndWatch();
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;
  ~EndWatch();

  // Whoever ended meanwhile is told first. Once; `on_end` is called on the thread, and must not
  // throw.
  void start(std::function<void(const std::string& id)> on_end);

  // Told once at most. Returns what it is forgotten by; the pidfd may be closed before or after.
  std::uint64_t add(const std::string& id, const linux::Pidfd& pidfd);
  void forget(std::uint64_t tag);

 private:
  void run(const std::stop_token& stop);
  std::string take(std::uint64_t tag);

  struct Watched {
    std::map<std::uint64_t, std::string> ids;  // by tag
    std::uint64_t next = 1;
  };

  linux::Fd epoll_;
  linux::Fd stop_;
  Guarded<Watched> watched_;
  std::function<void(const std::string& id)> on_end_;
  std::jthread thread_;
};

}  // namespace hearth::runtime
