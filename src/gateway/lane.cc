#include "gateway/lane.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <csignal>
#include <utility>

#include "base/log.h"
#include "base/on_failure.h"
#include "base/thread_name.h"
#include "gateway/session.h"

namespace hearth::gateway {
namespace {

// Requests that wait for news, for each thread. They hold buffers; more are told no.
constexpr std::size_t kMostHeld = 4096;

// Accepted in a row, before those that are here get their turn.
constexpr int kAccepts = 64;

// How long nobody is accepted when the process has no descriptor left.
constexpr Duration kPause = std::chrono::milliseconds(100);

constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

std::string address_text(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  }
  std::string peer = text.data();
  constexpr std::string_view kMapped = "::ffff:";
  if (peer.starts_with(kMapped)) peer.erase(0, kMapped.size());
  return peer;
}

}  // namespace

class Lane::Listener final : public Watched {
 public:
  Listener(Lane& lane, linux::Fd socket, std::shared_ptr<net::TlsContext> tls)
      : lane_(lane), socket_(std::move(socket)), tls_(std::move(tls)) {}

  void join() {
    // Level-triggered: a turn may end before all are accepted.
    lane_.loop_.watch(socket_.get(), *this, EPOLLIN);
  }

  void on_event(std::uint32_t) override {
    for (int i = 0; i < kAccepts && socket_; ++i) {
      sockaddr_storage address{};
      socklen_t size = sizeof address;
      linux::Fd client(::accept4(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size,
                                 SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (client) {
        lane_.deal(std::move(client), address_text(address), tls_.get());
        continue;
      }
      const bool is_out_of_room =
          errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (is_out_of_room && !lane_.evict()) pause();
      return;
    }
  }

  void close() { socket_.reset(); }

 private:
  void pause() {
    lane_.loop_.unwatch(socket_.get());
    lane_.loop_.after(kPause, [this] {
      if (socket_) join();
    });
  }

  Lane& lane_;
  linux::Fd socket_;
  const std::shared_ptr<net::TlsContext> tls_;
};

Lane::Lane(Shared& shared)
    : shared_(shared),
      meter_(shared.options.registry),
      upstreams_(shared.options.limits, [this](UpstreamPtr dead) { bury(std::move(dead)); }),
      scratch_(std::make_unique<std::array<char, kBufferBytes>>()) {
  loop_.set_after_batch([this] { after_batch(); });
  loop_.set_tick([this] { tick(); });
  if (shared_.options.access_log != nullptr) access_lines_.emplace(*shared_.options.access_log);
}

Lane::~Lane() = default;

void Lane::add_listener(linux::Fd socket, std::shared_ptr<net::TlsContext> tls) {
  listeners_.push_back(std::make_unique<Listener>(*this, std::move(socket), std::move(tls)));
  listeners_.back()->join();
}

void Lane::run() {
  name_thread("lane");
  // OpenSSL writes to sockets whose peer is gone with write(2).
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  loop_.run();
}

void Lane::deal(linux::Fd socket, std::string peer, net::TlsContext* tls) {
  Lane* to = this;
  for (Lane* lane : shared_.lanes) {
    if (lane->load_ < to->load_) to = lane;
  }
  to->load_.fetch_add(1);
  if (to == this) {
    open(std::move(socket), std::move(peer), tls);
    return;
  }
  to->post([to, tls, peer = std::move(peer),
            held = std::make_shared<linux::Fd>(std::move(socket))]() mutable {
    to->open(std::move(*held), std::move(peer), tls);
  });
}

void Lane::open(linux::Fd socket, std::string peer, net::TlsContext* tls) {
  OnFailure refused([this] { load_.fetch_sub(1); });
  if (is_draining_) return;
  if (shared_.connections >= shared_.max_connections && !evict()) {
    // Of those that speak TLS nobody would understand this.
    if (tls == nullptr) {
      static_cast<void>(::send(socket.get(), kFull.data(), kFull.size(), MSG_NOSIGNAL));
    }
    return;
  }
  try {
    auto session = std::make_shared<Session>(*this, std::move(socket), std::move(peer),
                                             tls != nullptr ? net::native_handle(*tls) : nullptr);
    session->start();
    idle_.push_back(session);
    session->place_ = std::prev(idle_.end());
    session->is_idle_ = true;
    shared_.connections.fetch_add(1);
    meter_.connected(1);
    refused.release();
  } catch (const Error& error) {
    log::warning("accept a connection", {{"why", error.what()}});
  }
}

bool Lane::evict() {
  if (idle_.empty()) return false;
  idle_.front()->close();
  return true;
}

void Lane::set_idle(Session& session, bool is_idle) {
  if (session.is_idle_ == is_idle) return;
  Sessions& from = is_idle ? busy_ : idle_;
  Sessions& to = is_idle ? idle_ : busy_;
  to.splice(to.end(), from, session.place_);
  session.is_idle_ = is_idle;
}

void Lane::bury(Session& session) {
  Sessions& list = session.is_idle_ ? idle_ : busy_;
  dead_.push_back(std::move(*session.place_));
  list.erase(session.place_);
  shared_.connections.fetch_sub(1);
  load_.fetch_sub(1);
  meter_.connected(-1);
}

void Lane::again(Session& session) {
  again_.push_back(session.shared_from_this());
}

bool Lane::hold(Session& session) {
  if (held_.size() >= kMostHeld) return false;
  held_.insert(&session);
  held_count_ = held_.size();
  return true;
}

void Lane::release(Session& session) {
  held_.erase(&session);
  held_count_ = held_.size();
}

// Copies: what is done to a session may end it, and others of the list never.
template <typename F>
void Lane::for_each_session(F&& act) {
  for (Sessions* list : {&busy_, &idle_}) {
    for (auto at = list->begin(); at != list->end();) {
      const std::shared_ptr<Session> session = *at++;
      act(*session);
    }
  }
}

void Lane::after_change(const RoutePtr& before, const RoutePtr& now) {
  const bool has_streams = before && before->activity->open > 0;
  if (!has_streams && held_count_ == 0) return;
  post([this, before, key = now ? now->key : before->key, has_streams] {
    if (has_streams) {
      for_each_session([&](Session& session) { session.cut_off(*before); });
    }
    const std::vector<Session*> held(held_.begin(), held_.end());
    for (Session* session : held) {
      if (held_.contains(session)) session->look_again(key, std::nullopt);
    }
  });
}

void Lane::after_wake(const model::Key& key, std::optional<Refusal> refusal) {
  post([this, key, refusal] {
    const std::vector<Session*> held(held_.begin(), held_.end());
    for (Session* session : held) {
      if (held_.contains(session)) session->look_again(key, refusal);
    }
  });
}

void Lane::drain() {
  post([this] {
    is_draining_ = true;
    for (const auto& listener : listeners_) listener->close();
    for_each_session([](Session& session) { session.drain(); });
    end_if_done();
  });
}

void Lane::cut() {
  post([this] {
    is_draining_ = true;
    for (const auto& listener : listeners_) listener->close();
    for_each_session([](Session& session) { session.close(true); });
    end_if_done();
  });
}

void Lane::end_if_done() {
  if (is_draining_ && busy_.empty() && idle_.empty()) loop_.stop();
}

void Lane::after_batch() {
  // Those that had their share go on after one look at the others.
  std::vector<std::shared_ptr<Session>> again;
  again.swap(again_);
  for (const auto& session : again) session->advance();
  if (!again_.empty()) loop_.hurry();
  dead_.clear();
  dead_upstreams_.clear();
  if (is_draining_) end_if_done();
}

void Lane::tick() {
  const std::int64_t now = loop_.now();
  for_each_session([now](Session& session) { session.check_deadline(now); });
  upstreams_.sweep(now);
  shared_.ahead->sweep(limits().idle_upstream);
  shared_.spares->sweep(limits().spare_upstream);
  if (access_lines_) access_lines_->hand_over();
}

}  // namespace hearth::gateway
