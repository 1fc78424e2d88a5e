// SHA-256, as images write it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace hearth::registry {

class Sha256 {
 public:
  Sha256();

  void update(std::string_view bytes);
  // "sha256:" and 64 hexadecimal digits. Once.
  std::string finish();

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

std::string sha256_of(std::string_view bytes);

}  // namespace hearth::registry
