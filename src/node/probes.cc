#include "node/probes.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/ip_text.h"
#include "guest/client.h"
#include "linux/fd.h"
#include "net/client.h"
#include "node/grpc_health.h"
#include "runtime/runtime.h"

namespace hearth::node {
namespace {

using model::text_at;

// Of what a container says about itself, in events and conditions.
constexpr std::size_t kMostMessage = 1024;
constexpr std::uint64_t kMostBody = std::uint64_t{10} << 10;
constexpr std::string_view kUserAgent = "kube-probe/1.36";

std::string bounded(std::string text) {
  if (text.size() > kMostMessage) text.resize(kMostMessage);
  return text;
}

std::uint16_t parse_port(const Json& port, const Json& container) {
  if (const auto number = model::as_integer(port))
    if (*number > 0 && *number <= 65535) return static_cast<std::uint16_t>(*number);
  const std::string_view name = port.is_string() ? std::string_view(port.get_string()) : "";
  if (const model::JsonArray* ports = model::array_at(container, {"ports"}))
    for (const Json& one : *ports) {
      const auto number = model::number_at(one, {"containerPort"});
      if (!name.empty() && text_at(one, {"name"}) == name && number && *number > 0 &&
          *number <= 65535)
        return static_cast<std::uint16_t>(*number);
    }
  fail(Code::invalid, "there is no port '{}' in the container",
       name.empty() ? model::to_text(port) : std::string(name));
}

struct Place {
  std::string address;
  std::uint16_t port = 0;

  std::string text() const { return fmt::format("{}:{}", address, port); }
};

Place find_place(const Json& handler, const ProbeTarget& target) {
  const std::string_view host = text_at(handler, {"host"});
  if (!host.empty() && host != target.address)
    fail(Code::invalid, "the host '{}' is not the pod's own; only the pod itself is asked", host);
  if (target.address.empty()) fail(Code::unavailable, "the pod has no address to connect to");
  const Json* port = model::find(handler, {"port"});
  return {target.address, parse_port(port ? *port : Json(), target.container)};
}

// --- exec

// Its beginning is kept, the rest goes nowhere. False when there will be no more.
bool read_output(int fd, std::string& output) {
  std::array<char, 4096> piece;
  const ssize_t got = ::read(fd, piece.data(), piece.size());
  if (got > 0 && output.size() < kMostMessage)
    output.append(piece.data(), static_cast<std::size_t>(got));
  return got > 0;
}

bool is_readable(int fd) {
  pollfd state{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&state, 1, 0) > 0;
}

// Reads what the command writes, so that it never waits for us.
guest::Exited follow(guest::Connection& guest, int output_fd, Deadline deadline,
                     std::string& output) {
  constexpr int kMostLeft = 16;  // pieces that a command may have left in the pipe
  bool is_open = true;
  while (!deadline.passed()) {
    std::array<pollfd, 2> states{
        pollfd{.fd = guest.fd(), .events = POLLIN, .revents = 0},
        pollfd{.fd = is_open ? output_fd : -1, .events = POLLIN, .revents = 0}};
    if (::poll(states.data(), states.size(), deadline.poll_milliseconds()) < 0 && errno != EINTR)
      throw_errno("wait for a probe");
    if (states[1].revents != 0) is_open = read_output(output_fd, output);
    if (states[0].revents == 0) continue;
    const auto exited = guest.wait(Deadline::after({}));
    if (!exited) continue;
    for (int i = 0; is_open && i < kMostLeft && is_readable(output_fd); ++i)
      is_open = read_output(output_fd, output);
    return *exited;
  }
  return {.status = {}, .timed_out = true};
}

ProbeResult run_command(runtime::Runtime& runtime, const Json& handler, const std::string& sandbox,
                        Duration patience) {
  guest::ExecRequest request;
  if (const model::JsonArray* words = model::array_at(handler, {"command"}))
    for (const Json& word : *words)
      if (word.is_string()) request.command.emplace_back(std::string_view(word.get_string()));
  if (request.command.empty()) fail(Code::invalid, "the handler has no command");
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
  request.timeout_milliseconds = static_cast<std::uint64_t>(std::max<long>(1, milliseconds));
  guest::Connection guest(runtime.connect(sandbox));
  linux::Pipe pipe = linux::make_pipe();
  linux::open_to_everyone(pipe.read.get());
  // The guest ends the command itself; that it does not answer at all is another matter.
  const Deadline deadline = Deadline::after(patience + std::chrono::seconds(1));
  guest.start(request, {.input = -1, .output = pipe.write.get(), .error = pipe.write.get()},
              deadline);
  pipe.write.reset();
  std::string output;
  const guest::Exited exited = follow(guest, pipe.read.get(), deadline, output);
  if (exited.timed_out)
    return {false, fmt::format("command timed out: {}",
                               bounded(fmt::format("{}", fmt::join(request.command, " "))))};
  const bool ok = exited.status.signal == 0 && exited.status.code == 0;
  return {ok, bounded(std::move(output))};
}

// --- network

linux::Fd connect_to(const Place& place, Deadline deadline) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(place.port);
  const auto parsed = parse_ipv4(place.address);
  if (!parsed) fail(Code::invalid, "'{}' is no address", place.address);
  address.sin_addr = *parsed;
  linux::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw_errno("make a socket");
  int error = 0;
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    error = errno;
  if (error == EINPROGRESS) {
    pollfd state{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&state, 1, deadline.poll_milliseconds()) <= 0)
      fail(Code::timeout, "dial tcp {}: i/o timeout", place.text());
    socklen_t size = sizeof error;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  }
  if (error != 0)
    fail(Code::unavailable, "dial tcp {}: connect: {}", place.text(), errno_text(error));
  return socket;
}

http::Headers headers_of(const Json& handler) {
  http::Headers headers;
  if (const model::JsonArray* given = model::array_at(handler, {"httpHeaders"}))
    for (const Json& one : *given)
      headers.add(std::string(text_at(one, {"name"})), std::string(text_at(one, {"value"})));
  if (!headers.find("User-Agent")) headers.add("User-Agent", std::string(kUserAgent));
  if (!headers.find("Accept")) headers.add("Accept", "*/*");
  return headers;
}

// The status, as soon as there is one; bodies are of no interest. Redirects are not followed: who
// sends one is well.
unsigned get_status(const Json& handler, const Place& place, Duration patience) {
  net::Endpoint endpoint{.host = place.address, .port = place.port};
  if (text_at(handler, {"scheme"}) == "HTTPS") {
    net::TlsClientOptions tls;
    tls.verify = false;  // nobody signs certificates for the addresses of pods
    endpoint.tls = net::make_tls_context(tls);
  }
  net::Request request;
  const std::string_view path = text_at(handler, {"path"});
  request.target = path.starts_with('/') ? std::string(path) : "/" + std::string(path);
  request.headers = headers_of(handler);
  unsigned status = 0;
  net::FetchOptions options;
  options.timeout = patience;
  options.max_body_bytes = kMostBody;
  options.on_head = [&](const net::Response& head) { status = head.status; };
  try {
    net::Client(endpoint).fetch(std::move(request), options);
  } catch (const Error&) {
    if (status == 0) throw;
  }
  return status;
}

ProbeResult check_grpc(const Json& handler, const ProbeTarget& target, Duration patience) {
  const Place place = find_place(handler, target);
  const Deadline deadline = Deadline::after(patience);
  const linux::Fd socket = connect_to(place, deadline);
  std::string to_send = health_check_request(place.text(), text_at(handler, {"service"}));
  HealthAnswer answer;
  while (!answer.is_over()) {
    const short events = to_send.empty() ? POLLIN : POLLIN | POLLOUT;
    pollfd state{.fd = socket.get(), .events = events, .revents = 0};
    if (::poll(&state, 1, deadline.poll_milliseconds()) <= 0)
      fail(Code::timeout, "timeout: health rpc did not complete within {}s",
           std::chrono::duration_cast<std::chrono::seconds>(patience).count());
    if ((state.revents & POLLOUT) != 0 && !to_send.empty()) {
      const ssize_t sent = ::send(socket.get(), to_send.data(), to_send.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) throw_errno("send to '{}'", place.text());
      to_send.erase(0, static_cast<std::size_t>(std::max<ssize_t>(0, sent)));
    }
    if ((state.revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    std::array<char, 4096> piece;
    const ssize_t got = ::recv(socket.get(), piece.data(), piece.size(), 0);
    if (got < 0 && errno != EAGAIN) throw_errno("read from '{}'", place.text());
    if (got == 0) fail(Code::unavailable, "the server at '{}' hung up", place.text());
    if (got > 0) to_send += answer.take({piece.data(), static_cast<std::size_t>(got)});
  }
  const auto status = answer.status();
  if (!status) return {false, "the server answered the health check with an error"};
  if (*status == HealthAnswer::Status::serving) return {true, "service healthy"};
  constexpr std::array<std::string_view, 4> kNames{"UNKNOWN", "SERVING", "NOT_SERVING",
                                                   "SERVICE_UNKNOWN"};
  return {false, fmt::format("service unhealthy (responded with \"{}\")",
                             kNames[static_cast<std::size_t>(*status)])};
}

Duration timeout_of(const Json& probe) {
  const auto seconds = model::number_at(probe, {"timeoutSeconds"}).value_or(1);
  return std::chrono::seconds(std::clamp<std::int64_t>(seconds, 1, 3600));
}

}  // namespace

ProbeResult Prober::probe(const Json& probe, const ProbeTarget& target) {
  const Duration patience = timeout_of(probe);
  try {
    if (const Json* get = model::find(probe, {"httpGet"})) {
      const unsigned status = get_status(*get, find_place(*get, target), patience);
      const bool ok = status >= 200 && status < 400;
      return {ok, ok ? "" : fmt::format("HTTP probe failed with statuscode: {}", status)};
    }
    if (const Json* grpc = model::find(probe, {"grpc"})) return check_grpc(*grpc, target, patience);
    return ask(probe, target, patience);
  } catch (const Error& error) {
    return {false, bounded(error.what())};
  }
}

ProbeResult Prober::ask(const Json& handler, const ProbeTarget& target, Duration patience) {
  if (const Json* exec = model::find(handler, {"exec"}))
    return run_command(runtime_, *exec, target.sandbox, patience);
  if (const Json* socket = model::find(handler, {"tcpSocket"})) {
    connect_to(find_place(*socket, target), Deadline::after(patience));
    return {true, ""};
  }
  fail(Code::invalid, "the handler names nothing that is known here");
}

ProbeResult Prober::run_hook(const Json& handler, const ProbeTarget& target, Duration patience) {
  try {
    if (const Json* sleep = model::find(handler, {"sleep"})) {
      const auto seconds = std::chrono::seconds(model::number_at(*sleep, {"seconds"}).value_or(0));
      std::this_thread::sleep_for(std::clamp<Duration>(seconds, Duration(0), patience));
      return {true, ""};
    }
    if (const Json* get = model::find(handler, {"httpGet"})) {
      get_status(*get, find_place(*get, target), patience);  // that it answers is enough
      return {true, ""};
    }
    return ask(handler, target, patience);
  } catch (const Error& error) {
    return {false, bounded(error.what())};
  }
}

}  // namespace hearth::node
