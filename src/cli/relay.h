// Bytes between two connected sockets, both ways, until both are done.
#pragma once

#include <poll.h>

#include <array>
#include <string>

#include "linux/fd.h"

namespace hearth::cli {

class Relay {
 public:
  Relay(linux::Fd left, linux::Fd right);

  // What to poll(2) for before the next step(); -1 as descriptor: nothing.
  std::array<pollfd, 2> waiting() const;
  // Moves what can be moved now. Never waits, never throws: a side that fails ends both.
  void step();
  bool is_over() const { return over_; }

 private:
  struct Way {
    int from = -1;
    int to = -1;
    std::string buffer{};
    bool ended = false;  // the sender is done, and the receiver knows
  };
  // Whether the way goes on.
  static bool move(Way& way);

  linux::Fd left_;
  linux::Fd right_;
  std::array<Way, 2> ways_;
  bool over_ = false;
};

}  // namespace hearth::cli
