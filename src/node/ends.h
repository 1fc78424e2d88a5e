// Hears how containers end: one thread for the guests of all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "guest/client.h"
#include "linux/fd.h"

namespace hearth::node {

struct SandboxEnd {
  enum class How {
    exited,      // its main command did
    vanished,    // the sandbox itself is gone, with all that ran in it
    never_began  // there is no main command
  };
  How how = How::vanished;
  guest::Exited exited = {};
};

// Thread-safe.
class Ends {
 public:
  // Called once for each sandbox, on the thread of all: it must not block.
  using Told = std::function<void(const SandboxEnd& end)>;

  Ends();
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  ~Ends() { stop(); }

  // Instead of what was watched for this sandbox before. Where it has a main command the guest is
  // asked for its end; otherwise only the sandbox's own counts.
  void watch(const std::string& sandbox, guest::Connection connection, bool has_main, Told told);
  // To the main command alone. False when it has ended.
  bool signal(std::string_view sandbox, int signal);
  // Nobody is told any more.
  void forget(std::string_view sandbox);
  // Nobody is told anything any more. Idempotent.
  void stop();

 private:
  struct Watched {
    std::string sandbox;
    guest::Connection connection;
    Told told;
  };

  void run();
  void hear(std::uint64_t number);
  std::shared_ptr<Watched> take(std::uint64_t number);

  linux::Fd epoll_;
  linux::Fd wake_;
  std::mutex mutex_;  // guards what follows, down to the thread
  std::map<std::uint64_t, std::shared_ptr<Watched>> watched_;
  std::map<std::string, std::uint64_t, std::less<>> numbers_;
  std::uint64_t next_ = 1;
  std::jthread thread_;
};

}  // namespace hearth::node
