// One command and one client, whatever the wire between them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "linux/pty.h"
#include "net/words.h"
#include "remote/backend.h"
#include "remote/tasks_internal.h"

namespace hearth::net {
class Stream;
}

namespace hearth::remote {

// The numbers are those of the WebSocket protocol.
enum class Channel : unsigned char { input = 0, output = 1, error = 2, status = 3, resize = 4 };

// What a client says.
struct ClientWord {
  enum class Kind { input, input_end, resize, nothing };
  Kind kind = Kind::nothing;
  std::string bytes;
  linux::WindowSize size;
};

// {"Width":80,"Height":24}; nothing for what is none.
std::optional<linux::WindowSize> parse_window_size(std::string_view json);

// How it ended, as the client is told.
struct Verdict {
  int exit_code = 0;
  std::string failure;  // of ours, in place of an exit code
};
// A Status of v4 and later.
std::string status_text(const Verdict& verdict);

// The client's end. One coroutine reads while others write.
class CommandWire {
 public:
  CommandWire() = default;
  CommandWire(const CommandWire&) = delete;
  CommandWire& operator=(const CommandWire&) = delete;
  virtual ~CommandWire() = default;

  // Nothing when the client has left. May throw Error, which means the same.
  virtual boost::asio::awaitable<std::optional<ClientWord>> read() = 0;
  // Returns when the client has taken it. Throws Error.
  virtual boost::asio::awaitable<void> write(Channel channel, std::string_view bytes) = 0;
  // The last word. Throws Error.
  virtual boost::asio::awaitable<void> conclude(const Verdict& verdict) = 0;
  // Ends the connection, and by that the reader, which is among `tasks`. Does not throw.
  virtual boost::asio::awaitable<void> close(Tasks& tasks) = 0;
  // When the client has closed its side: for who cannot read now.
  virtual boost::asio::awaitable<void> wait_gone() = 0;
};

// What the client asked for: exec has a command, attach none.
struct CommandPlan {
  Container container;
  std::vector<std::string> command;
  Streams streams;
  bool attach = false;
};

// Starts it, and passes everything on until it has ended or the client left.
boost::asio::awaitable<void> converse(CommandWire& wire, CommandPlan plan, Backend& backend);

boost::asio::awaitable<void> serve_command_websocket(net::Request request, net::Stream& stream,
                                                     CommandPlan plan, Backend& backend);
boost::asio::awaitable<void> serve_command_spdy(net::Request request, net::Stream& stream,
                                                CommandPlan plan, Backend& backend);

}  // namespace hearth::remote
