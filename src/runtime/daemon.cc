#include "runtime/daemon.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <list>
#include <thread>

#include "base/error.h"
#include "base/log.h"

namespace hearth::runtime {
namespace {

// Engine, gateway, and one for each `hearth run --rm`. A waiting thread costs some 20 KiB. The next
// one is told to come back.
constexpr int kMaxConnections = 1024;

// Waits for `fd` to become readable: false when it is time to stop.
bool wait_readable(int fd, int stop_fd) {
  while (true) {
    std::array<pollfd, 2> waiting = {{{.fd = fd, .events = POLLIN, .revents = 0},
                                      {.fd = stop_fd, .events = POLLIN, .revents = 0}}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
      throw_errno("wait for requests");
    if (waiting[1].revents != 0) return false;
    if (waiting[0].revents != 0) return true;
  }
}

struct Session {
  std::atomic<bool> over = false;
  std::jthread thread;
};

}  // namespace

Daemon::Daemon(LinuxRuntime& runtime, int listen_fd, uid_t owner)
    : runtime_(runtime),
      listen_fd_(listen_fd),
      owner_(owner),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_) throw_errno("make an eventfd");
}

void Daemon::stop() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
}

void Daemon::run() {
  std::list<Session> sessions;
  while (wait_readable(listen_fd_, stop_.get())) {
    auto channel = linux::try_accept(listen_fd_);
    sessions.remove_if([](const Session& session) { return session.over.load(); });
    if (!channel) continue;
    const linux::Peer peer = linux::peer_of(channel->fd());
    if (peer.uid != 0 && peer.uid != owner_) {
      log::warning("refused a connection", {{"uid", peer.uid}, {"pid", peer.pid}});
      continue;
    }
    if (connections_ >= kMaxConnections) {
      const Failed full{.code = Code::exhausted,
                        .message = "the runtime has too many connections; try again"};
      channel->try_send(encode(Reply(full)));
      continue;
    }
    ++connections_;
    Session& session = sessions.emplace_back();
    session.thread = std::jthread([this, &session, mine = std::move(*channel)]() mutable {
      serve(std::move(mine));
      --connections_;
      session.over = true;
    });
  }
}

void Daemon::serve(linux::Channel channel) {
  std::vector<std::string> tied;
  try {
    while (true) {
      // A runtime that stops is not a client that left: what is tied to it lives on.
      if (!wait_readable(channel.fd(), stop_.get())) return;
      const auto message = channel.receive();
      if (!message) break;
      answer(channel, *message, tied);
    }
  } catch (const std::exception& error) {
    // A client that breaks off is its own business.
    log::debug("connection closed", {{"error", error.what()}});
  }
  for (const std::string& id : tied) {
    try {
      runtime_.destroy(id);
    } catch (const Error& error) {
      log::error("sandbox outlives its client", {{"id", id}, {"error", error.what()}});
    }
  }
}

void Daemon::answer(linux::Channel& channel, const linux::Message& message,
                    std::vector<std::string>& tied) {
  Reply reply;
  linux::Channel guest;
  bool ends = false;
  try {
    const Request request = parse_request(message.bytes);
    reply = handle(request, guest, tied);
    ends = std::holds_alternative<ShutdownRequest>(request);
  } catch (const Error& error) {
    reply = Failed{.code = error.code(), .message = error.what()};
  } catch (const std::exception& error) {
    reply = Failed{.code = Code::internal, .message = error.what()};
  }
  const int fd = guest.fd();
  channel.send(encode(reply), {&fd, guest ? std::size_t{1} : 0});
  if (ends) stop();
}

Reply Daemon::handle(const Request& request, linux::Channel& guest,
                     std::vector<std::string>& tied) {
  if (std::holds_alternative<HelloRequest>(request)) {
    return Hello{.protocol = kProtocolVersion,
                 .version = HEARTH_VERSION,
                 .pid = static_cast<std::uint32_t>(::getpid()),
                 .cgroups = runtime_.describe_cgroups(),
                 .adopted = runtime_.adopted(),
                 .swept = runtime_.swept()};
  }
  if (const auto* create = std::get_if<CreateRequest>(&request)) {
    Runtime::Created created = runtime_.create(create->spec);
    guest = std::move(created.guest);
    if (create->spec.ends_with_client) tied.push_back(created.sandbox.id);
    return Sandboxes{.all = {std::move(created.sandbox)}};
  }
  if (const auto* connect = std::get_if<ConnectRequest>(&request)) {
    guest = runtime_.connect(connect->id);
    return Done{};
  }
  if (const auto* destroy = std::get_if<DestroyRequest>(&request)) {
    runtime_.destroy(destroy->id);
    return Done{};
  }
  if (const auto* get = std::get_if<GetRequest>(&request))
    return Sandboxes{.all = {runtime_.get(get->id)}};
  if (const auto* shutdown = std::get_if<ShutdownRequest>(&request)) {
    if (shutdown->destroy_all) runtime_.destroy_all();
    return Done{};
  }
  return Sandboxes{.all = runtime_.list()};
}

}  // namespace hearth::runtime
