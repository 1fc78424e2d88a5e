#include "bench/crowd.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "bench/interrupt.h"
#include "bench/surface_client.h"

namespace hearth::bench {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

// Where the value of a header begins, however its name is spelled; npos when there is none.
std::size_t find_field(std::string_view head, std::string_view name) {
  for (std::size_t line = head.find("\r\n"); line != std::string_view::npos;
       line = head.find("\r\n", line + 2)) {
    const std::string_view rest = head.substr(line + 2);
    if (rest.size() <= name.size() || rest[name.size()] != ':') continue;
    if (::strncasecmp(rest.data(), name.data(), name.size()) == 0)
      return line + 2 + name.size() + 2;
  }
  return std::string_view::npos;
}

std::size_t parse_size(std::string_view text, int base) {
  std::size_t size = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), size, base).ec != std::errc())
    fail(Code::internal, "'{}' is no size", text.substr(0, 32));
  return size;
}

// Behind the last chunk; nothing: it is still to come.
std::optional<std::size_t> end_of_chunks(std::string_view bytes, std::size_t at) {
  while (true) {
    const std::size_t line = bytes.find("\r\n", at);
    if (line == std::string_view::npos) return {};
    const std::size_t size = parse_size(bytes.substr(at, line - at), 16);
    at = line + 2 + size + 2;
    if (at > bytes.size()) return {};
    if (size == 0) return at;
  }
}

std::optional<std::size_t> end_of_answer(std::string_view bytes, std::size_t body) {
  const std::string_view head = bytes.substr(0, body);
  if (head.starts_with("HTTP/1.1 204")) return body;
  if (const std::size_t at = find_field(head, "Content-Length"); at != std::string_view::npos) {
    const std::size_t end = body + parse_size(head.substr(at), 10);
    return end <= bytes.size() ? std::optional(end) : std::nullopt;
  }
  if (find_field(head, "Transfer-Encoding") != std::string_view::npos)
    return end_of_chunks(bytes, body);
  fail(Code::internal, "an answer without an end: '{}'", head);
}

}  // namespace

std::optional<AnswerExtent> find_answer(std::string_view bytes) {
  const std::size_t head = bytes.find(kHeadEnd);
  if (head == std::string_view::npos) return {};
  const std::size_t body = head + kHeadEnd.size();
  const auto end = end_of_answer(bytes, body);
  if (!end) return {};
  if (!bytes.starts_with("HTTP/1.1 2"))
    fail(Code::internal, "the server answered '{}' {}", bytes.substr(0, bytes.find('\r')),
         bytes.substr(body, *end - body));
  return AnswerExtent{.body = body, .end = *end};
}

Crowd::Crowd(std::uint16_t port, unsigned count) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw_errno("make an epoll");
  members_.resize(count);
  for (unsigned i = 0; i < count; ++i) {
    members_[i].socket = connect_to_port(port);
    epoll_event event{.events = EPOLLIN, .data = {.u32 = i}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, members_[i].socket.get(), &event) < 0)
      throw_errno("watch a connection");
  }
}

// Requests are small: the kernel takes each at once.
void Crowd::send(Member& member, std::string_view request) {
  const ssize_t sent = ::send(member.socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
  if (sent < 0) throw_errno("send a request");
  if (static_cast<std::size_t>(sent) != request.size())
    fail(Code::internal, "a request of {} bytes does not go out at once", request.size());
}

// False: this member is done.
bool Crowd::receive(unsigned index, const OnAnswer& on_answer) {
  Member& member = members_[index];
  std::array<char, 16384> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  const ssize_t got = ::recv(member.socket.get(), piece.data(), piece.size(), MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return true;
  if (got < 0) throw_errno("receive an answer");
  if (got == 0) fail(Code::unavailable, "the server closed the connection");
  member.buffer.append(piece.data(), static_cast<std::size_t>(got));
  if (!member.stopped && !member.stop_at.empty() &&
      member.buffer.find(member.stop_at) != std::string::npos)
    member.stopped = now();
  const auto answer = find_answer(member.buffer);
  if (!answer) return true;
  if (!member.stop_at.empty() && !member.stopped)
    fail(Code::internal, "'{}' is not in the answer '{}'", member.stop_at, member.buffer);
  const std::string whole = std::exchange(member.buffer, {});
  return on_answer(index, std::string_view(whole).substr(answer->body, answer->end - answer->body));
}

void Crowd::wait(unsigned waiting, const OnAnswer& on_answer) {
  std::array<epoll_event, 128> events;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (waiting > 0) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(),
                                   static_cast<int>(kPatience / std::chrono::milliseconds(1)));
    check_interrupts();
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("wait for answers");
    if (count == 0) fail(Code::timeout, "{} answers do not come", waiting);
    for (int i = 0; i < count; ++i)
      if (!receive(events[static_cast<std::size_t>(i)].data.u32, on_answer)) --waiting;
  }
}

std::vector<double> Crowd::talk(unsigned count, const Next& next) {
  std::vector<double> times(count);
  unsigned talking = 0;
  const auto say = [&](unsigned index, const Exchange& exchange) {
    members_[index].stop_at = exchange.stop_at;
    members_[index].stopped.reset();
    send(members_[index], exchange.request);
  };
  std::vector<std::optional<Exchange>> first(count);
  for (unsigned i = 0; i < count; ++i) first[i] = next(i, {});
  for (unsigned i = 0; i < count; ++i) {
    members_[i].begin = now();
    if (!first[i]) continue;
    say(i, *first[i]);
    ++talking;
  }
  wait(talking, [&](unsigned index, std::string_view body) {
    Member& member = members_[index];
    times[index] = us_between(member.begin, member.stopped.value_or(now()));
    const auto exchange = next(index, body);
    if (exchange) say(index, *exchange);
    return exchange.has_value();
  });
  return times;
}

std::vector<double> Crowd::load(const std::string& request, Duration time) {
  std::vector<double> times;
  const Moment end = now() + time;
  for (Member& member : members_) {
    member.stop_at = {};
    member.begin = now();
    send(member, request);
  }
  wait(static_cast<unsigned>(members_.size()), [&](unsigned index, std::string_view) {
    Member& member = members_[index];
    const Moment at = now();
    times.push_back(us_between(member.begin, at));
    if (at >= end) return false;
    member.begin = at;
    send(member, request);
    return true;
  });
  return times;
}

}  // namespace hearth::bench
