// The one gRPC call that probes make: grpc.health.v1.Health/Check over plain HTTP/2.
//
// As little of HTTP/2 as that takes: one stream, no header compression of ours, and none of theirs
// read: a check that failed has no message, and that is told apart without it. Knows no socket.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::node {

// All that is ever sent unasked. `service` may be empty: the server as a whole.
std::string health_check_request(std::string_view authority, std::string_view service);

class HealthAnswer {
 public:
  // What a health server says about a service.
  enum class Status : std::uint8_t { unknown = 0, serving = 1, not_serving = 2, no_service = 3 };

  // Takes what arrived; returns what has to be sent in turn. Throws Error(invalid) for what is no
  // HTTP/2, Error(unavailable) when the server gives up.
  std::string take(std::string_view bytes);
  bool is_over() const { return is_over_; }
  // Nothing: the server answered with an error.
  std::optional<Status> status() const;

 private:
  struct Frame {
    std::uint8_t type = 0;
    std::uint8_t flags = 0;
    std::uint32_t stream = 0;
    std::string_view payload;
  };
  void take_frame(const Frame& frame, std::string& reply);

  std::string waiting_;  // of a frame that is not complete
  std::string message_;
  bool is_over_ = false;
};

}  // namespace hearth::node
