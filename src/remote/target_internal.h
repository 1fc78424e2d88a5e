// A connection to a port inside, for a client that forwards one of its own to it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "remote/backend.h"
#include "remote/descriptor_internal.h"
#include "remote/tasks_internal.h"

namespace hearth::remote {

// The client's end of one forwarded connection. All throw Error when the client has left.
class Outlet {
 public:
  Outlet() = default;
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;
  virtual ~Outlet() = default;

  virtual boost::asio::awaitable<void> data(std::string_view bytes) = 0;
  // No more will come. Torn: not because all was said.
  virtual boost::asio::awaitable<void> end(bool is_torn) = 0;
  // Whether the client can say that it sends no more. If not, the target's end is the end.
  virtual bool has_half_close() const = 0;
  // It could not be connected.
  virtual boost::asio::awaitable<void> refuse(std::string message) = 0;
};

class Target {
 public:
  Target(const boost::asio::any_io_executor& executor, std::unique_ptr<Outlet> outlet,
         std::uint16_t port);

  // Connects, and passes everything on until both sides have ended or cut() was called. Does not
  // throw.
  boost::asio::awaitable<void> run(const Container& container, Backend& backend);

  // From the client.
  void put(std::string_view bytes);
  // More than this is not to be put: the target does not read.
  bool is_full() const;
  boost::asio::awaitable<void> wait_room();
  void end_input();
  void cut();

 private:
  boost::asio::awaitable<void> relay();
  boost::asio::awaitable<void> pass_to_client();
  boost::asio::awaitable<void> pass_to_target();

  boost::asio::any_io_executor executor_;
  std::unique_ptr<Outlet> outlet_;
  std::uint16_t port_;
  Descriptor socket_;
  std::string pending_;  // for the target
  bool input_ended_ = false;
  bool is_cut_ = false;
  Bell changed_;
};

}  // namespace hearth::remote
