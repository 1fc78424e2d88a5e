// POST /execute: one command, its output in memory, its end.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>

#include "base/clock.h"
#include "guest/core.h"

namespace hearth::runtimeapi {

// What is captured of all commands together, beyond what each may have in any case. The guest is
// outside the sandbox's limits: its memory is the host's.
inline constexpr std::size_t kMaxCaptured = std::size_t{64} << 20;
inline constexpr std::size_t kFreeCaptured = std::size_t{64} << 10;

// How much of kMaxCaptured is in use. Thread-safe.
class CaptureBudget {
 public:
  bool take(std::size_t bytes);
  void give_back(std::size_t bytes) { used_ -= bytes; }

 private:
  std::atomic<std::size_t> used_ = 0;
};

// Output that counts for as long as it is kept.
class Captured {
 public:
  explicit Captured(CaptureBudget& budget) : budget_(budget) {}
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() { budget_.give_back(taken_); }

  // Reads what is there from a non-blocking descriptor, and closes it at its end. Throws
  // Error(exhausted).
  void read_output(linux::Fd& fd) { read_into(fd, output_); }
  void read_error(linux::Fd& fd) { read_into(fd, error_); }

  const std::string& output() const { return output_; }
  const std::string& error() const { return error_; }

 private:
  void read_into(linux::Fd& fd, std::string& text);
  void count(std::size_t bytes);

  CaptureBudget& budget_;
  std::size_t size_ = 0;
  std::size_t taken_ = 0;
  std::string output_;
  std::string error_;
};

struct Execution {
  std::string directory;
  Duration timeout{};
};

// The exit code: negative for a signal. Nothing when the time was up. Throws Error for what could
// not be started and for too much output; what runs is then killed.
std::optional<int> execute(guest::Core& core, const std::string& command,
                           const Execution& execution, Captured& captured);

}  // namespace hearth::runtimeapi
