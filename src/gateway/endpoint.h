// One connected socket of a loop, plain or TLS, with what the kernel last said about it.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "gateway/loop.h"
#include "linux/fd.h"

struct ssl_st;
struct ssl_ctx_st;

namespace hearth::gateway {

enum class Io {
  moved,    // some bytes
  blocked,  // not now
  ended,    // the peer will send no more
  failed,   // the connection is lost
};

struct Moved {
  Io state = Io::blocked;
  std::size_t bytes = 0;
  int error = 0;  // of Io::failed; 0 for TLS
};

class Endpoint;

class EndpointOwner {
 public:
  EndpointOwner() = default;
  EndpointOwner(const EndpointOwner&) = delete;
  EndpointOwner& operator=(const EndpointOwner&) = delete;
  virtual ~EndpointOwner() = default;
  virtual void on_ready(Endpoint& endpoint) = 0;
};

enum class TlsRole { server, client };

class Endpoint : public Watched {
 public:
  // `is_connecting`: the kernel will say when it can be written to.
  Endpoint(linux::Fd socket, bool is_connecting);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint() override;

  // Before the first byte. Throws Error.
  void start_tls(ssl_ctx_st* context, TlsRole role);
  void join(Loop& loop, EndpointOwner& owner);
  void set_owner(EndpointOwner& owner) { owner_ = &owner; }

  // Whether it is worth trying.
  bool can_read() const { return is_readable_ || has_ended_; }
  bool can_write() const { return is_writable_; }
  // Whether it ever took a byte.
  bool is_connected() const { return is_connected_; }
  // Whether the peer said that it sends no more, or is gone; what it sent before may be unread.
  bool has_ended() const { return has_ended_; }
  bool is_tls() const { return tls_ != nullptr; }
  bool is_closed() const { return !socket_; }

  Moved read(std::span<char> into);
  // Any part of it.
  Moved write(std::span<const iovec> parts);

  // No more will be written.
  void finish();
  // `reset`: the peer shall see that something broke, whatever it knows of the end.
  void close(bool reset = false);

  void on_event(std::uint32_t events) override;

 private:
  struct FreeTls {
    void operator()(ssl_st* tls) const;
  };
  void unwatch();
  Moved read_tls(std::span<char> into);
  Moved write_tls(std::span<const iovec> parts);
  Moved tls_result(int result, bool is_read);

  linux::Fd socket_;
  std::unique_ptr<ssl_st, FreeTls> tls_;
  Loop* loop_ = nullptr;
  EndpointOwner* owner_ = nullptr;
  bool is_readable_ = false;
  bool is_writable_ = true;
  bool is_connected_ = false;
  bool has_ended_ = false;
};

}  // namespace hearth::gateway
