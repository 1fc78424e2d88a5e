// What the kernel tests of this room share. Not for anything else.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "linux/capabilities.h"

// Loudly, with the name of what is missing.
#define HEARTH_NEEDS(capability)                                    \
  if (!::hearth::linux::has_capability(capability)) {               \
    GTEST_SKIP() << "needs " #capability ": run as root on a host"; \
  }                                                                 \
  static_assert(true)

namespace hearth::linux {

inline std::string unique_name(const std::string& what) {
  return fmt::format("hearth-test-{}-{}", what, ::getpid());
}

// A fork of this process that runs `body` and exits with what it returns; 99 for an exception,
// which it prints.
inline pid_t start_child(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  int code = 99;
  try {
    code = body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "in the child: %s\n", error.what());
  }
  ::_exit(code);
}

// The exit code, or minus the signal.
inline int wait_for_child(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) return 98;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

inline int run_in_child(const std::function<int()>& body) {
  return wait_for_child(start_child(body));
}

}  // namespace hearth::linux
