// What the tests of this room share: a client that sends whatever bytes it is told to, and
// certificates made on the spot.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "net/tls.h"

namespace hearth::net {

// A blocking socket. Every wait ends after ten seconds with what there is by then.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port);
  explicit RawClient(const std::string& unix_path);
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient();

  void send(std::string_view bytes) const;
  // Sends copies of `piece` until the kernel takes no more for `stall`, or `most` bytes are sent.
  // Returns how many it took.
  std::size_t send_until_stuck(std::string_view piece, std::size_t most, Duration stall) const;
  void half_close() const;
  void close();
  void reset();  // as a crashing peer does: unread data, RST

  // Whether something can be read, now or within `patience`.
  bool has_answer(Duration patience) const;
  // Up to and including `end`.
  std::string read_until(std::string_view end);
  std::string read_exactly(std::size_t count);
  // A head, and the body that its Content-Length announces.
  std::string read_response();
  // Until the server closes.
  std::string read_all();
  // Whether the server has closed or reset the connection; waits for it.
  bool sees_end();

 private:
  bool fill();

  int fd_ = -1;
  std::string ahead_;
};

// A folder that goes with the test.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

struct Identity {
  Pem certificate;
  Pem key;
};

// A certificate for `common_name`, also as DNS name or address ("IP:127.0.0.1") `subject_alt`,
// signed by `signer`; without one by itself, as an authority. Of the organisations
// `groups`; for `extended_usage` only ("serverAuth"), if given.
Identity make_identity(const std::string& common_name, const std::string& subject_alt = {},
                       const Identity* signer = nullptr,
                       const std::vector<std::string>& groups = {},
                       const std::string& extended_usage = {});

}  // namespace hearth::net
