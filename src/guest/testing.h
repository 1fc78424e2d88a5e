// For tests of surfaces: a guest that serves in a thread of this process, as this user.
//
// It must be the process's only user of SIGCHLD and wait(2), and there may be one at a time.
#pragma once

#include <memory>

#include "guest/core.h"

namespace hearth::guest {

class TestGuest {
 public:
  // Commands run as who runs the test, whatever `settings` says.
  explicit TestGuest(Settings settings = {});
  TestGuest(const TestGuest&) = delete;
  TestGuest& operator=(const TestGuest&) = delete;
  ~TestGuest();

  Core& core();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::guest
