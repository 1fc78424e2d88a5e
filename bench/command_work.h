// Work that is nothing but commands.
#pragma once

#include <string>
#include <vector>

#include "bench/process.h"
#include "bench/subject.h"

namespace hearth::bench {

// A command that makes a sandbox, runs the program in it and is over when the sandbox is gone.
class CycleCommand final : public Work {
 public:
  explicit CycleCommand(std::vector<std::string> words) : words_(std::move(words)) {}

  double do_once() override { return time_command(words_, witness_); }

 private:
  std::vector<std::string> words_;
  Witness witness_;
};

// A command that prints a number and nothing else: that is the figure.
class RateCommand final : public Work {
 public:
  explicit RateCommand(std::vector<std::string> words) : words_(std::move(words)) {}

  double do_once() override { return parse_figure(first_line_of(words_)); }

 private:
  std::vector<std::string> words_;
};

}  // namespace hearth::bench
