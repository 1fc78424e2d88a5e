// What the two sources of the name server share: its state, and the form of its messages.
#pragma once

#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/guarded.h"
#include "linux/fd.h"
#include "network/services.h"
#include "node/dns_message.h"
#include "node/name_server.h"

namespace hearth::node {

inline constexpr std::size_t kMostDatagram = 4096;
inline constexpr std::size_t kMostStreams = 64;
inline constexpr auto kNamePatience = std::chrono::seconds(5);

inline sockaddr_in socket_address(std::uint32_t address, std::uint16_t port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_addr.s_addr = htonl(address);
  made.sin_port = htons(port);
  return made;
}

// As streams have it: with its length before it.
inline std::string framed(std::string_view message) {
  std::string out = {static_cast<char>(message.size() >> 8),
                     static_cast<char>(message.size() & 0xff)};
  out += message;
  return out;
}

// Of the first message, its length included; nothing as long as that is not known.
inline std::optional<std::size_t> framed_size(std::string_view bytes) {
  if (bytes.size() < 2) return std::nullopt;
  return 2 + (std::size_t{static_cast<std::uint8_t>(bytes[0])} << 8 |
              static_cast<std::uint8_t>(bytes[1]));
}

class NameServer::State {
 public:
  explicit State(const NameServerOptions& options);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  }

  std::uint32_t address() const { return options_.address; }
  std::uint16_t port() const { return port_; }
  Guarded<Names> names;

 private:
  using Instant = std::chrono::steady_clock::time_point;

  void bind_both();
  // Who asked, and what: its answer is looked into only where `is_named`.
  struct Asker {
    sockaddr_in client{};
    std::uint64_t stream = 0;  // 0: it was a datagram
    bool is_named = false;
    dns::Question question;
  };
  // A datagram that was passed on under a number of ours.
  struct Passed {
    Asker asker;
    Instant until;
  };
  // A question of a stream, on a connection of its own to the resolver: answers may be long.
  struct Asked {
    Asker asker;
    linux::Fd fd;
    std::string question;  // what is to be sent of it
    std::string answer;    // with its length
    Instant until;
  };
  struct Stream {
    std::uint64_t number = 0;
    sockaddr_in client{};
    linux::Fd fd;
    std::string read;
    Instant until;
  };

  void run();
  void take_datagrams();
  void take_streams();
  void take_answers();
  void read_stream(Stream& stream);
  void carry_on(Asked& asked);
  void give_up(Asked& asked);
  void forget_old(Instant now);
  // The answer, if there is one at once.
  std::optional<std::string> answer(std::string_view message, const sockaddr_in& client,
                                    std::uint64_t stream);
  bool pass_on(std::string_view message, const Asker& asker);
  bool ask_for(std::string_view message, const Asker& asker);
  // The asker hears it, at once or when it may reach what it says.
  void give(const Asker& asker, std::string_view answer);
  void hold_back(const Asker& asker, std::string_view answer, std::vector<std::uint32_t> addresses);
  void say(const sockaddr_in& client, std::uint64_t stream, std::string_view answer);
  void take_admitted();
  // Names of the outside lead outside: not to other sandboxes, and not to Services.
  bool is_outside(std::uint32_t address) const {
    return !options_.clients.contains(address) && !network::kServiceRange.contains(address);
  }
  bool is_heard(const sockaddr_in& client) const {
    return options_.clients.contains(ntohl(client.sin_addr.s_addr));
  }
  // Streams that do not take it at once are closed.
  static void send_all(Stream& stream, std::string_view bytes);

  const NameServerOptions options_;
  linux::Fd datagrams_;
  linux::Fd listener_;
  linux::Fd upstream_;
  linux::Fd stop_;
  const sockaddr_in resolver_;
  std::uint16_t port_ = 0;
  std::map<std::uint16_t, Passed> passed_;
  std::list<Asked> asked_;
  std::list<Stream> streams_;
  std::uint64_t last_stream_ = 0;
  std::optional<Admissions> admissions_;  // where anybody has rules by name
  std::mt19937 random_{std::random_device()()};
  std::jthread thread_;  // last: uses the rest
};

}  // namespace hearth::node
