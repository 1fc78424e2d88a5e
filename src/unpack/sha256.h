// SHA-256, as images write it: "sha256:..." in lower case.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace hearth::unpack {

class Sha256 {
 public:
  Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  ~Sha256();

  void add(std::span<const char> bytes);
  // Once, at the end.
  std::string digest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::unpack
