// Our gateway in a process of its own, with one sandbox in its table whose pod is this machine's
// loopback: what is measured is the way of bytes through it, and nothing else that an engine does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace hearth::bench {

inline constexpr const char* kProxiedSandbox = "ibench";

class ProxyGateway {
 public:
  // `folder` is empty, and somebody else's to remove. One thread carries the bytes.
  explicit ProxyGateway(const std::string& folder);
  ProxyGateway(const ProxyGateway&) = delete;
  ProxyGateway& operator=(const ProxyGateway&) = delete;
  ~ProxyGateway();

  std::uint16_t port() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace hearth::bench
