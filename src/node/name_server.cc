#include "node/name_server.h"

#include <poll.h>

#include <array>

#include "node/name_server_internal.h"

namespace hearth::node {
namespace {

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

NameServer::State::State(const NameServerOptions& options)
    : options_(options),
      datagrams_(open_socket(SOCK_DGRAM)),
      listener_(open_socket(SOCK_STREAM)),
      upstream_(open_socket(SOCK_DGRAM)),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      resolver_(socket_address(options.upstream, options.upstream_port)) {
  bind_both();
  if (options_.admit) admissions_.emplace(options_.admit);
  if (::listen(listener_.get(), 64) != 0) throw_errno("listen for names");
  thread_ = std::jthread([this] { run(); });
}

// One port for both. What is free for datagrams may be taken for streams, all the more where
// thousands of connections have just ended.
void NameServer::State::bind_both() {
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

void NameServer::State::run() {
  while (true) {
    std::vector<pollfd> waiting = {
        {.fd = stop_.get(), .events = POLLIN},
        {.fd = datagrams_.get(), .events = POLLIN},
        {.fd = listener_.get(), .events = POLLIN},
        {.fd = upstream_.get(), .events = POLLIN},
        {.fd = admissions_ ? admissions_->ready_fd() : -1, .events = POLLIN}};
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
    if (waiting[4].revents != 0) take_admitted();
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
                      .client = client,
                      .fd = std::move(fd),
                      .until = std::chrono::steady_clock::now() + kNamePatience});
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
    if (const auto said = answer(message, stream.client, stream.number))
      send_all(stream, framed(*said));
  }
}

void NameServer::State::send_all(Stream& stream, std::string_view bytes) {
  const ssize_t sent = ::send(stream.fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(bytes.size())) stream.fd.reset();
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
