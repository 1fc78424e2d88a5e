// The lines of a watch, which arrive in pieces of any size.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace hearth::client {

class LineSplitter {
 public:
  explicit LineSplitter(std::size_t most_bytes) : most_(most_bytes) {}

  // Calls `use` for each line that is complete now, without its end; empty ones are skipped.
  // Throws Error(exhausted) for a line that is longer than allowed.
  void feed(std::string_view piece, const std::function<void(std::string_view line)>& use) {
    while (!piece.empty()) {
      const std::size_t end = piece.find('\n');
      const std::string_view part = piece.substr(0, end);
      if (part.size() > most_ - begun_.size()) {
        fail(Code::exhausted, "a watch sent a line of more than {} bytes", most_);
      }
      if (end == std::string_view::npos) {
        begun_ += part;
        return;
      }
      piece.remove_prefix(end + 1);
      if (begun_.empty()) {
        if (!part.empty()) use(part);
        continue;
      }
      begun_ += part;
      const std::string line = std::exchange(begun_, {});
      use(line);
    }
  }

 private:
  std::size_t most_;
  std::string begun_;
};

}  // namespace hearth::client
