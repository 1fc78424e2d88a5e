// A client of etcd with nothing in it that takes time: gRPC over HTTP/2 without TLS, one request at
// a time, headers rendered once and never read. No client library is faster, so that what is
// measured is etcd.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "linux/fd.h"

namespace hearth::bench {

class EtcdClient {
 public:
  // Throws Error(unavailable).
  explicit EtcdClient(std::uint16_t port);

  void put(std::string_view key, std::string_view value);
  // The size of the answer.
  std::size_t get(std::string_view key);
  // Everything whose key begins so.
  std::size_t get_all(std::string_view prefix);

 private:
  std::size_t ask(std::string_view path, std::string_view message);
  void send(std::string_view bytes) const;
  void receive(std::size_t size);
  void take_data(std::size_t size);

  linux::Fd connection_;
  std::uint32_t next_stream_ = 1;
  std::string buffer_;          // what was received
  std::size_t used_ = 0;        // of it
  std::size_t unreported_ = 0;  // received and not yet given back to etcd's window
};

}  // namespace hearth::bench
