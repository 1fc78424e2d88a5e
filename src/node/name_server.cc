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

// As streams have it: with its length before it.
std::string framed(std::string_view message) {
  std::string out = {static_cast<char>(message.size() >> 8),
                     static_cast<char>(message.size() & 0xff)};
  out += message;
  return out;
}

// Of the first message, its length included; nothing as long as that is not known.
std::optional<std::size_t> framed_size(std::string_view bytes) {
  if (bytes.size() < 2) return std::nullopt;
  return 2 + (std::size_t{static_cast<std::uint8_t>(bytes[0])} << 8 |
              static_cast<std::uint8_t>(bytes[1]));
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
        stop_(::eventfd(0, EFD_CLOEXEC)),
        resolver_(socket_address(options.upstream, options.upstream_port)) {
    bind_both();
    if (::listen(listener_.get(), 64) != 0) throw_errno("listen for names");
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
  // One port for both. What is free for datagrams may be taken for streams, all the more where
  // thousands of connections have just ended.
  void bind_both() {
    constexpr int kTries = 100;
    for (int left = kTries; port_ == 0; --left) {
      bind_to(datagrams_, options_.address, 0);
      try {
        bind_to(listener_, options_.address, port_of(datagrams_));
        port_ = port_of(datagrams_);
      } catch (const Error&) {
        if (left == 0) throw;
        datagrams_ = open_socket(SOCK_DGRAM);
      }
    }
  }

  // A datagram that was passed on under a number of ours.
  struct Passed {
    std::uint16_t id = 0;
    sockaddr_in client{};
    Instant until;
  };
  // A question of a stream, on a connection of its own to the resolver: answers may be long.
  struct Asked {
    std::uint64_t stream = 0;
    linux::Fd fd;
    std::string question;  // what is to be sent of it
    std::string answer;    // with its length
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
  void carry_on(Asked& asked);
  void give_up(Asked& asked);
  void forget_old(Instant now);
  // The answer, if there is one at once.
  std::optional<std::string> answer(std::string_view message, const sockaddr_in& client,
                                    std::uint64_t stream);
  bool pass_on(std::string_view message, const sockaddr_in& client);
  bool ask_for(std::string_view message, std::uint64_t stream);
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
  std::mt19937 random_{std::random_device()()};
  std::jthread thread_;  // last: uses the rest
};

void NameServer::State::run() {
  while (true) {
    std::vector<pollfd> waiting = {{.fd = stop_.get(), .events = POLLIN},
                                   {.fd = datagrams_.get(), .events = POLLIN},
                                   {.fd = listener_.get(), .events = POLLIN},
                                   {.fd = upstream_.get(), .events = POLLIN}};
    std::size_t i = waiting.size();
    for (const Stream& stream : streams_)
      waiting.push_back({.fd = stream.fd.get(), .events = POLLIN});
    for (const Asked& asked : asked_)
      waiting.push_back({.fd = asked.fd.get(),
                         .events = static_cast<short>(asked.question.empty() ? POLLIN : POLLOUT)});
    const bool is_idle = passed_.empty() && streams_.empty() && asked_.empty();
    if (::poll(waiting.data(), waiting.size(), is_idle ? -1 : 1000) < 0 && errno != EINTR) return;
    if (waiting[0].revents != 0) return;
    // What they add is at the end, and was not asked for yet.
    const std::size_t streams = streams_.size();
    const std::size_t asked = asked_.size();
    auto stream = streams_.begin();
    for (std::size_t n = 0; n < streams; ++n, ++stream)
      if (waiting[i++].revents != 0) read_stream(*stream);
    auto question = asked_.begin();
    for (std::size_t n = 0; n < asked; ++n, ++question)
      if (waiting[i++].revents != 0) carry_on(*question);
    if (waiting[1].revents != 0) take_datagrams();
    if (waiting[2].revents != 0) take_streams();
    if (waiting[3].revents != 0) take_answers();
    forget_old(std::chrono::steady_clock::now());
  }
}

void NameServer::State::forget_old(Instant now) {
  std::erase_if(passed_, [&](const auto& one) { return one.second.until < now; });
  asked_.remove_if([&](const Asked& asked) { return !asked.fd || asked.until < now; });
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
  while (const auto size = stream.fd ? framed_size(stream.read) : std::nullopt) {
    if (*size > 2 + kMostDatagram) return stream.fd.reset();
    if (stream.read.size() < *size) return;
    const std::string message = stream.read.substr(2, *size - 2);
    stream.read.erase(0, *size);
    if (const auto said = answer(message, {}, stream.number)) send_all(stream, framed(*said));
  }
}

void NameServer::State::send_all(Stream& stream, std::string_view bytes) {
  const ssize_t sent = ::send(stream.fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(bytes.size())) stream.fd.reset();
}

std::optional<std::string> NameServer::State::answer(std::string_view message,
                                                     const sockaddr_in& client,
                                                     std::uint64_t stream) {
  const auto question = dns::parse_question(message);
  if (!question) return std::nullopt;
  const bool is_ours =
      question->name == options_.domain || question->name.ends_with("." + options_.domain);
  if (!is_ours) {
    if (stream != 0 ? ask_for(message, stream) : pass_on(message, client)) return std::nullopt;
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

bool NameServer::State::pass_on(std::string_view message, const sockaddr_in& client) {
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
  if (::sendto(upstream_.get(), out.data(), out.size(), 0,
               reinterpret_cast<const sockaddr*>(&resolver_), sizeof resolver_) < 0)
    return false;
  passed_[id] = {
      .id = own, .client = client, .until = std::chrono::steady_clock::now() + kPatience};
  return true;
}

void NameServer::State::take_answers() {
  std::array<char, 65536> buffer;
  for (int round = 0; round < 64; ++round) {
    sockaddr_in sender{};
    socklen_t size = sizeof sender;
    const ssize_t got = ::recvfrom(upstream_.get(), buffer.data(), buffer.size(), 0,
                                   reinterpret_cast<sockaddr*>(&sender), &size);
    if (got < 0) return;
    if (got < 12 || sender.sin_addr.s_addr != resolver_.sin_addr.s_addr ||
        sender.sin_port != resolver_.sin_port)
      continue;
    const auto id = static_cast<std::uint16_t>(static_cast<std::uint8_t>(buffer[0]) << 8 |
                                               static_cast<std::uint8_t>(buffer[1]));
    const auto found = passed_.find(id);
    if (found == passed_.end()) continue;
    const Passed passed = found->second;
    passed_.erase(found);
    buffer[0] = static_cast<char>(passed.id >> 8);
    buffer[1] = static_cast<char>(passed.id & 0xff);
    ::sendto(datagrams_.get(), buffer.data(), static_cast<std::size_t>(got), 0,
             reinterpret_cast<const sockaddr*>(&passed.client), sizeof passed.client);
  }
}

bool NameServer::State::ask_for(std::string_view message, std::uint64_t stream) {
  if (options_.upstream == 0 || asked_.size() >= kMostStreams) return false;
  linux::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return false;
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&resolver_), sizeof resolver_) != 0 &&
      errno != EINPROGRESS)
    return false;
  asked_.push_back({.stream = stream,
                    .fd = std::move(fd),
                    .question = framed(message),
                    .until = std::chrono::steady_clock::now() + kPatience});
  return true;
}

// Whoever waits sees it at once.
void NameServer::State::give_up(Asked& asked) {
  asked.fd.reset();
  for (Stream& stream : streams_)
    if (stream.number == asked.stream) stream.fd.reset();
}

// What comes back has its length before it, as it is to be passed on.
void NameServer::State::carry_on(Asked& asked) {
  if (!asked.question.empty()) {
    const ssize_t sent =
        ::send(asked.fd.get(), asked.question.data(), asked.question.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN ? void() : give_up(asked);
    asked.question.erase(0, static_cast<std::size_t>(sent));
    return;
  }
  std::array<char, 16384> buffer;
  const ssize_t got = ::recv(asked.fd.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) return give_up(asked);
  asked.answer.append(buffer.data(), static_cast<std::size_t>(got));
  const auto size = framed_size(asked.answer);
  if (!size || asked.answer.size() < *size) return;
  for (Stream& stream : streams_)
    if (stream.number == asked.stream && stream.fd)
      send_all(stream, std::string_view(asked.answer).substr(0, *size));
  asked.fd.reset();
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
