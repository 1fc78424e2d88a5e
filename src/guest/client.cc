#include "guest/client.h"

#include <fcntl.h>

#include <array>

namespace hearth::guest {
namespace {

[[noreturn]] void throw_unexpected() {
  fail(Code::internal, "the guest answered with something that was not asked for");
}

// The reply as a T, or what the guest says instead as an Error.
template <typename T>
T expect(const linux::Message& message) {
  Reply reply = parse_reply(message.bytes);
  if (const auto* failed = std::get_if<Failed>(&reply)) throw Error(failed->code, failed->message);
  if (auto* expected = std::get_if<T>(&reply)) return std::move(*expected);
  throw_unexpected();
}

}  // namespace

linux::Message Connection::next(Deadline deadline) {
  auto message = channel_.receive(deadline);
  if (!message) fail(Code::unavailable, "the sandbox went away");
  return std::move(*message);
}

Connection::Greeting Connection::hello(Deadline deadline) {
  channel_.send(encode(Request(HelloRequest{})), {}, deadline);
  linux::Message message = next(deadline);
  Greeting greeting{.hello = expect<Hello>(message), .stage = {}};
  if (!message.fds.empty()) greeting.stage = std::move(message.fds.front());
  return greeting;
}

void Connection::send_exec(const ExecRequest& request, const Stdio& stdio, Deadline deadline) {
  if (request.terminal || request.detached)
    return channel_.send(encode(Request(request)), {}, deadline);
  if (!null_ && (stdio.input < 0 || stdio.output < 0 || stdio.error < 0))
    null_ = linux::open_file("/dev/null", O_RDWR);
  const auto or_null = [&](int fd) { return fd < 0 ? null_.get() : fd; };
  const std::array fds = {or_null(stdio.input), or_null(stdio.output), or_null(stdio.error)};
  channel_.send(encode(Request(request)), fds, deadline);
}

Connection::Process Connection::start(const ExecRequest& request, const Stdio& stdio,
                                      Deadline deadline) {
  send_exec(request, stdio, deadline);
  linux::Message message = next(deadline);
  Process process{.pid = expect<Started>(message).pid, .terminal = {}};
  if (request.terminal && !request.detached) {
    if (message.fds.size() != 1) throw_unexpected();
    process.terminal = std::move(message.fds.front());
  }
  return process;
}

void Connection::send_signal(int signal, bool to_group) {
  channel_.send(encode(
      Request(SignalRequest{.signal = static_cast<std::uint32_t>(signal), .to_group = to_group})));
}

std::optional<Exited> Connection::wait(Deadline deadline) {
  try {
    return expect<Exited>(next(deadline));
  } catch (const Error& error) {
    if (error.code() == Code::timeout && deadline.passed()) return std::nullopt;
    throw;
  }
}

Exited Connection::run(const ExecRequest& request, const Stdio& stdio) {
  HEARTH_ASSERT(!request.terminal && !request.detached);
  ExecRequest quiet = request;
  quiet.only_end = true;
  send_exec(quiet, stdio, Deadline::never());
  return *wait();
}

Connection::Attached Connection::attach(std::uint32_t pid) {
  channel_.send(encode(Request(AttachRequest{.pid = pid})));
  linux::Message message = next(Deadline::never());
  Attached attached{.pid = expect<Started>(message).pid, .input = {}};
  if (!message.fds.empty()) attached.input = std::move(message.fds.front());
  return attached;
}

std::variant<Output, Exited> Connection::next_of_attached() {
  const linux::Message message = next(Deadline::never());
  Reply reply = parse_reply(message.bytes);
  if (auto* output = std::get_if<Output>(&reply)) return std::move(*output);
  return expect<Exited>(message);
}

void Connection::ask_for_end() {
  channel_.send(encode(Request(EndRequest{})));
}

void Connection::stop(Duration grace, bool leave) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(grace).count();
  channel_.send(encode(Request(StopRequest{
      .grace_milliseconds = static_cast<std::uint32_t>(milliseconds), .leave = leave})));
  expect<Exited>(next(Deadline::never()));
}

std::string Connection::read_file(const std::string& path, std::uint32_t most) {
  channel_.send(encode(Request(FileRequest{.path = path, .most = most})));
  return expect<Output>(next(Deadline::never())).bytes;
}

void Connection::read_log(const LogRequest& request,
                          const std::function<bool(const Output&)>& output) {
  channel_.send(encode(Request(request)));
  while (true) {
    Reply reply = parse_reply(next(Deadline::never()).bytes);
    if (const auto* piece = std::get_if<Output>(&reply)) {
      if (!output(*piece)) return;
    } else if (std::holds_alternative<Exited>(reply)) {
      return;
    } else if (const auto* failed = std::get_if<Failed>(&reply)) {
      throw Error(failed->code, failed->message);
    } else {
      throw_unexpected();
    }
  }
}

linux::Fd Connection::connect(std::uint16_t port, Deadline deadline) {
  channel_.send(encode(Request(ConnectRequest{.port = port})), {}, deadline);
  linux::Message message = next(deadline);
  expect<Connected>(message);
  if (message.fds.size() != 1) throw_unexpected();
  return std::move(message.fds.front());
}

std::vector<std::uint16_t> Connection::ports() {
  channel_.send(encode(Request(PortsRequest{})));
  return expect<Ports>(next(Deadline::never())).listening;
}

void Connection::follow_ports(
    const std::function<bool(const std::vector<std::uint16_t>&)>& changed) {
  channel_.send(encode(Request(PortsRequest{.follow = true})));
  while (changed(expect<Ports>(next(Deadline::never())).listening)) {
  }
}

void Connection::configure(const Configuration& configuration, Deadline deadline) {
  channel_.send(encode(Request(ConfigureRequest{.configuration = configuration})), {}, deadline);
  expect<Configured>(next(deadline));
}

}  // namespace hearth::guest
