// For tests: a streaming call, message by message.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "envd/connect.h"
#include "serve/testing.h"

namespace hearth::envd {

// One streaming call.
class TestStream {
 public:
  TestStream(std::uint16_t port, const std::string& method, const std::string& message,
             const http::Headers& headers = {}, const std::string& codec = "json")
      : client_(port) {
    const std::string body = make_envelope(0, message);
    std::string head = fmt::format(
        "POST /{} HTTP/1.1\r\nHost: x\r\nContent-Type: application/connect+{}\r\n"
        "Connect-Protocol-Version: 1\r\nContent-Length: {}\r\n",
        method, codec, body.size());
    for (const http::Field& field : headers)
      head += fmt::format("{}: {}\r\n", field.name, field.value);
    client_.send(head + "\r\n" + body);
  }

  // The next message; at the end "end:" and what is in it.
  std::string next() {
    if (!has_head_) {
      has_head_ = true;
      const http::Response head = client_.receive_head();
      EXPECT_EQ(head.status, 200U);
      type_ = head.headers.value("Content-Type");
    }
    while (bytes_.size() < 5 || bytes_.size() < 5 + length()) {
      const auto piece = client_.receive_piece();
      if (!piece) return "nothing";
      bytes_ += *piece;
    }
    const bool is_end = (bytes_[0] & kEndOfStream) != 0;
    std::string message = bytes_.substr(5, length());
    bytes_.erase(0, 5 + length());
    return is_end ? "end:" + message : message;
  }

  // All that follows, one line each.
  std::string rest() {
    std::string all;
    std::string message;
    do {
      message = next();
      all += message + "\n";
    } while (!message.starts_with("end:") && message != "nothing");
    return all;
  }

  const std::string& type() const { return type_; }
  void close() { client_.close(); }

 private:
  std::size_t length() const {
    std::size_t value = 0;
    for (int i = 1; i < 5; ++i) value = value << 8 | static_cast<unsigned char>(bytes_[i]);
    return value;
  }

  serve::TestClient client_;
  bool has_head_ = false;
  std::string type_;
  std::string bytes_;
};

// The number behind "pid": in a message.
inline unsigned pid_in(const std::string& message) {
  const std::size_t at = message.find("\"pid\":");
  return at == std::string::npos ? 0 : static_cast<unsigned>(std::stoul(message.substr(at + 6)));
}

}  // namespace hearth::envd
