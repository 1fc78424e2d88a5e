// Signals as something to wait for, among other things.
#pragma once

#include <signal.h>

#include <initializer_list>
#include <optional>

#include "linux/fd.h"

namespace hearth::cli {

// Keeps the named signals from their usual effect, and SIGPIPE too: a reader that left shows as an
// error of write(2). To be made before other threads, which inherit the mask; restores nothing, so
// it lives as long as the program.
class Signals {
 public:
  explicit Signals(std::initializer_list<int> signals);

  // Readable when next() has something.
  int fd() const { return fd_.get(); }

  // The oldest signal that came. Never waits.
  std::optional<int> next();

 private:
  linux::Fd fd_;
};

}  // namespace hearth::cli
