// Moves bytes from one descriptor to another, as far as both are willing, with one buffer between.
#pragma once

#include <poll.h>

#include <string>

#include "linux/fd.h"

namespace hearth::cli {

class Pump {
 public:
  // Both are borrowed; `ours` is whichever of the two ends with the pump: closing it tells the
  // other side. An end of ours must be non-blocking.
  Pump(int from_fd, int to_fd, linux::Fd ours = {})
      : from_fd_(from_fd), to_fd_(to_fd), ours_(std::move(ours)) {}

  // What to poll(2) for before the next step(); a negative descriptor when it is over.
  pollfd waiting() const;

  // One read or one write. Never throws: an end that fails ends the pump.
  void step();

  // What is there to read right now, all of it written. For when the writer is gone; another one
  // that goes on writing is cut off. Blocks as the destination does.
  void drain();

 private:
  bool fill();
  void end();

  int from_fd_;
  int to_fd_;
  linux::Fd ours_;
  std::string buffer_;
  bool over_ = false;
};

}  // namespace hearth::cli
