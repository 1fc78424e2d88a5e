#include "node/name_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <list>
#include <map>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/guarded.h"
#include "base/log.h"
#include "linux/fd.h"
#include "node/dns_message.h"

namespace hearth::node {
namespace {

using Instant = std::chrono::steady_clock::time_point;

constexpr std::size_t kMostDatagram = 4096;
constexpr std::size_t kMostPassedOn = 512;  // and not answered yet
constexpr std::size_t kMostStreams = 64;
constexpr auto kPatience = std::chrono::seconds(5);

sockaddr_in socket_address(std::uint32_t address, std::uint16_t port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_addr.s_addr = htonl(address);
  made.sin_port = htons(port);
  return made;
}

linux::Fd open_socket(int type) {
  linux::Fd made(::socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) throw_errno("make a socket for names");
  return made;
}

void bind_to(const linux::Fd& fd, std::uint32_t address, std::uint16_t port) {
  const sockaddr_in where = socket_address(address, port);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0)
    throw_errno("listen for names at {}:{}", network::address_text(address), port);
}

std::uint16_t port_of(const linux::Fd& fd) {
  sockaddr_in where{};
  socklen_t size = sizeof where;
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&where), &size);
  return ntohs(where.sin_port);
}

}  // namespace

class NameServer::State {
 public:
  explicit State(const NameServerOptions& options)
      : options_(options),
        datagrams_(open_socket(SOCK_DGRAM)),
        listener_(open_socket(SOCK_STREAM)),
        upstream_(open_socket(SOCK_DGRAM)),
        stop_(::eventfd(0, EFD_CLOEXEC)) {
    bind_to(datagrams_, options.address, 0);
    port_ = port_of(datagrams_);
    bind_to(listener_, options.address, port_);
    if (::listen(listener_.get(), 64) != 0) throw_errno("listen for names");
    if (options.upstream != 0) {
      const sockaddr_in where = socket_address(options.upstream, options.upstream_port);
      // Connected: nobody else's answers are heard.
      if (::connect(upstream_.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0)
        throw_errno("reach the resolver {}", network::address_text(options.upstream));
    }
    thread_ = std::jthread([this] { run(); });
  }
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
  // A question that was passed on under a number of ours.
  struct Passed {
    std::uint16_t id = 0;
    sockaddr_in client{};
    std::uint64_t stream = 0;  // 0: a datagram
    Instant until;
  };
  struct Stream {
    std::uint64_t number = 0;
    linux::Fd fd;
    std::string read;
    Instant until;
  };

  void run();
  void take_datagrams();
  void take_streams();
  void take_answers();
  void read_stream(Stream& stream);
  void forget_old(Instant now);
  // The answer, if there is one at once.
  std::optional<std::string> answer(std::string_view message, const sockaddr_in& client,
                                    std::uint64_t stream);
  bool pass_on(std::string_view message, const sockaddr_in& client, std::uint64_t stream);
  bool is_heard(const sockaddr_in& client) const {
    return options_.clients.contains(ntohl(client.sin_addr.s_addr));
  }
  static void send_framed(const Stream& stream, std::string_view message);

  const NameServerOptions options_;
  linux::Fd datagrams_;
  linux::Fd listener_;
  linux::Fd upstream_;
  linux::Fd stop_;
  std::uint16_t port_ = 0;
  std::map<std::uint16_t, Passed> passed_;
  std::list<Stream> streams_;
  std::uint64_t last_stream_ = 0;
  std::mt19937 random_{std::random_device()()};
  std::jthread thread_;  // last: uses the rest
};

void NameServer::State::run() {
  while (true) {
    std::vector<pollfd> waiting = {{.fd = stop_.get(), .events = POLLIN},
                                   {.fd = datagrams_.get(), .events = POLLIN},
                                   {.fd = listener_.get(), .events = POLLIN},
                                   {.fd = upstream_.get(), .events = POLLIN}};
    for (const Stream& stream : streams_)
      waiting.push_back({.fd = stream.fd.get(), .events = POLLIN});
    const bool is_idle = passed_.empty() && streams_.empty();
    if (::poll(waiting.data(), waiting.size(), is_idle ? -1 : 1000) < 0 && errno != EINTR) return;
    if (waiting[0].revents != 0) return;
    std::size_t i = 4;
    for (Stream& stream : streams_)
      if (waiting[i++].revents != 0) read_stream(stream);
    if (waiting[1].revents != 0) take_datagrams();
    if (waiting[2].revents != 0) take_streams();
    if (waiting[3].revents != 0) take_answers();
    forget_old(std::chrono::steady_clock::now());
  }
}

void NameServer::State::forget_old(Instant now) {
  std::erase_if(passed_, [&](const auto& one) { return one.second.until < now; });
  streams_.remove_if([&](const Stream& stream) { return !stream.fd || stream.until < now; });
}

void NameServer::State::take_datagrams() {
  std::array<char, kMostDatagram> buffer;
  for (int round = 0; round < 64; ++round) {
    sockaddr_in client{};
    socklen_t size = sizeof client;
    const ssize_t got = ::recvfrom(datagrams_.get(), buffer.data(), buffer.size(), 0,
                                   reinterpret_cast<sockaddr*>(&client), &size);
    if (got < 0) return;
    if (!is_heard(client)) continue;
    const auto said = answer({buffer.data(), static_cast<std::size_t>(got)}, client, 0);
    if (said)
      ::sendto(datagrams_.get(), said->data(), said->size(), 0,
               reinterpret_cast<const sockaddr*>(&client), size);
  }
}

void NameServer::State::take_streams() {
  sockaddr_in client{};
  socklen_t size = sizeof client;
  linux::Fd fd(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&client), &size,
                         SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd || !is_heard(client) || streams_.size() >= kMostStreams) return;
  streams_.push_back({.number = ++last_stream_,
                      .fd = std::move(fd),
                      .until = std::chrono::steady_clock::now() + kPatience});
}

// A message with its length before it; another one may follow.
void NameServer::State::read_stream(Stream& stream) {
  std::array<char, kMostDatagram> buffer;
  const ssize_t got = ::recv(stream.fd.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return stream.fd.reset();
  stream.read.append(buffer.data(), static_cast<std::size_t>(got));
  while (stream.fd && stream.read.size() >= 2) {
    const std::size_t size =
        static_cast<std::uint8_t>(stream.read[0]) << 8 | static_cast<std::uint8_t>(stream.read[1]);
    if (size > kMostDatagram) return stream.fd.reset();
    if (stream.read.size() < 2 + size) return;
    const std::string message = stream.read.substr(2, size);
    stream.read.erase(0, 2 + size);
    if (const auto said = answer(message, {}, stream.number)) send_framed(stream, *said);
  }
}

void NameServer::State::send_framed(const Stream& stream, std::string_view message) {
  std::string framed = {static_cast<char>(message.size() >> 8),
                        static_cast<char>(message.size() & 0xff)};
  framed += message;
  ::send(stream.fd.get(), framed.data(), framed.size(), MSG_NOSIGNAL);
}

std::optional<std::string> NameServer::State::answer(std::string_view message,
                                                     const sockaddr_in& client,
                                                     std::uint64_t stream) {
  const auto question = dns::parse_question(message);
  if (!question) return std::nullopt;
  const bool is_ours =
      question->name == options_.domain || question->name.ends_with("." + options_.domain);
  if (!is_ours) {
    if (pass_on(message, client, stream)) return std::nullopt;
    return dns::make_answer(*question, dns::Outcome::failed, {});
  }
  return names.with([&](const Names& known) {
    const auto found = known.find(question->name);
    if (found == known.end() || question->qclass != dns::kClassIn)
      return dns::make_answer(*question, dns::Outcome::no_such_name, {});
    if (question->type != dns::kTypeA) return dns::make_answer(*question, dns::Outcome::ok, {});
    return dns::make_answer(*question, dns::Outcome::ok, found->second);
  });
}

bool NameServer::State::pass_on(std::string_view message, const sockaddr_in& client,
                                std::uint64_t stream) {
  if (options_.upstream == 0 || passed_.size() >= kMostPassedOn) return false;
  std::uint16_t id = 0;
  do {
    id = static_cast<std::uint16_t>(random_());
  } while (passed_.contains(id));
  std::string out(message);
  const auto own = static_cast<std::uint16_t>(static_cast<std::uint8_t>(out[0]) << 8 |
                                              static_cast<std::uint8_t>(out[1]));
  out[0] = static_cast<char>(id >> 8);
  out[1] = static_cast<char>(id & 0xff);
  if (::send(upstream_.get(), out.data(), out.size(), MSG_NOSIGNAL) < 0) return false;
  passed_[id] = {.id = own,
                 .client = client,
                 .stream = stream,
                 .until = std::chrono::steady_clock::now() + kPatience};
  return true;
}

void NameServer::State::take_answers() {
  std::array<char, 65536> buffer;
  for (int round = 0; round < 64; ++round) {
    const ssize_t got = ::recv(upstream_.get(), buffer.data(), buffer.size(), 0);
    if (got < 12) return;
    const auto id = static_cast<std::uint16_t>(static_cast<std::uint8_t>(buffer[0]) << 8 |
                                               static_cast<std::uint8_t>(buffer[1]));
    const auto found = passed_.find(id);
    if (found == passed_.end()) continue;
    const Passed passed = found->second;
    passed_.erase(found);
    buffer[0] = static_cast<char>(passed.id >> 8);
    buffer[1] = static_cast<char>(passed.id & 0xff);
    const std::string_view message(buffer.data(), static_cast<std::size_t>(got));
    if (passed.stream == 0) {
      ::sendto(datagrams_.get(), message.data(), message.size(), 0,
               reinterpret_cast<const sockaddr*>(&passed.client), sizeof passed.client);
      continue;
    }
    for (const Stream& stream : streams_)
      if (stream.number == passed.stream && stream.fd) send_framed(stream, message);
  }
}

NameServer::NameServer(const NameServerOptions& options)
    : state_(std::make_unique<State>(options)) {}
NameServer::~NameServer() = default;

std::string NameServer::address() const {
  return network::address_text(state_->address());
}

std::uint16_t NameServer::port() const {
  return state_->port();
}

void NameServer::set_names(Names names) {
  state_->names.with([&](Names& known) { known = std::move(names); });
}

}  // namespace hearth::node
