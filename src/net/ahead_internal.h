// A ByteStream whose first bytes have been read already.
//
// Whoever takes over a connection after a handshake must first be given what the peer sent along
// with it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "net/byte_stream.h"

namespace hearth::net {

class AheadStream final : public ByteStream {
 public:
  // `stream` must outlive it.
  AheadStream(ByteStream& stream, std::string ahead) : stream_(stream), ahead_(std::move(ahead)) {}
  AheadStream(std::unique_ptr<ByteStream> stream, std::string ahead)
      : owned_(std::move(stream)), stream_(*owned_), ahead_(std::move(ahead)) {}

  boost::asio::any_io_executor executor() override { return stream_.executor(); }
  boost::asio::awaitable<Transfer> read_some(boost::asio::mutable_buffer into,
                                             Duration patience) override {
    if (ahead_.empty()) co_return co_await stream_.read_some(into, patience);
    const std::size_t count = boost::asio::buffer_copy(into, boost::asio::buffer(ahead_));
    ahead_.erase(0, count);
    co_return Transfer{{}, count};
  }
  boost::asio::awaitable<Transfer> write(Gather data, Duration patience) override {
    return stream_.write(data, patience);
  }
  boost::asio::awaitable<void> finish(Duration patience) override {
    return stream_.finish(patience);
  }
  boost::asio::awaitable<void> wait_disconnect() override { return stream_.wait_disconnect(); }
  bool is_quiet() override { return ahead_.empty() && stream_.is_quiet(); }
  void cut() override { stream_.cut(); }
  std::string peer() const override { return stream_.peer(); }
  std::string peer_certificate() const override { return stream_.peer_certificate(); }
  std::vector<std::string> peer_groups() const override { return stream_.peer_groups(); }

 private:
  std::unique_ptr<ByteStream> owned_;  // or null
  ByteStream& stream_;
  std::string ahead_;
};

}  // namespace hearth::net
