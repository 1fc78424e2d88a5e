// process.Process: starting commands, listening to them, talking to them.
#include <signal.h>
#include <sys/stat.h>

#include <array>

#include "envd/service_internal.h"

namespace hearth::envd {
namespace {

std::string signal_name(int signal) {
  // As Go calls them, whose words clients show to people.
  constexpr std::array<const char*, 32> kNames = {"signal 0",
                                                  "hangup",
                                                  "interrupt",
                                                  "quit",
                                                  "illegal instruction",
                                                  "trace/breakpoint trap",
                                                  "aborted",
                                                  "bus error",
                                                  "floating point exception",
                                                  "killed",
                                                  "user defined signal 1",
                                                  "segmentation fault",
                                                  "user defined signal 2",
                                                  "broken pipe",
                                                  "alarm clock",
                                                  "terminated",
                                                  "stack fault",
                                                  "child exited",
                                                  "continued",
                                                  "stopped (signal)",
                                                  "stopped",
                                                  "stopped (tty input)",
                                                  "stopped (tty output)",
                                                  "urgent I/O condition",
                                                  "CPU time limit exceeded",
                                                  "file size limit exceeded",
                                                  "virtual timer expired",
                                                  "profiling timer expired",
                                                  "window changed",
                                                  "I/O possible",
                                                  "power failure",
                                                  "bad system call"};
  if (signal > 0 && static_cast<std::size_t>(signal) < kNames.size())
    return kNames[static_cast<std::size_t>(signal)];
  return fmt::format("signal {}", signal);
}

ProcessResponse end_message(const inside::ProcessEnd& end) {
  EndEvent event;
  event.exited = end.status.signal == 0;
  event.exit_code.value = event.exited ? end.status.code : -1;
  event.status = event.exited ? fmt::format("exit status {}", end.status.code)
                              : "signal: " + signal_name(end.status.signal);
  if (event.exit_code.value != 0) event.error = event.status;
  ProcessResponse response;
  response.event.emplace().end = std::move(event);
  return response;
}

ProcessResponse start_message(std::uint32_t pid) {
  ProcessResponse response;
  response.event.emplace().start = StartEvent{.pid = pid};
  return response;
}

ProcessResponse data_message(inside::Stream stream, std::string_view bytes) {
  ProcessResponse response;
  DataEvent& data = response.event.emplace().data.emplace();
  switch (stream) {
    case inside::Stream::output:
      data.out = Bytes{std::string(bytes)};
      break;
    case inside::Stream::error:
      data.err = Bytes{std::string(bytes)};
      break;
    case inside::Stream::terminal:
      data.pty = Bytes{std::string(bytes)};
      break;
  }
  return response;
}

ProcessResponse keepalive_message() {
  ProcessResponse response;
  response.event.emplace().keepalive.emplace();
  return response;
}

// What goes to the client of `stream`, from the start of a process to its last output.
inside::Listener make_listener(RpcStream& stream, const Call& call, int peer_fd,
                               std::uint32_t pid) {
  stream.hold_back();
  inside::Listener listener;
  listener.begin = [&stream, pid] { stream.send(start_message(pid)); };
  listener.output = [&stream](inside::Stream which, std::string_view bytes) {
    stream.send(data_message(which, bytes));
  };
  listener.flush = [&stream] { stream.flush(); };
  listener.idle = [&stream] { stream.send(keepalive_message()); };
  listener.idle_after = call.keepalive;
  listener.peer_fd = peer_fd;
  return listener;
}

void finish_stream(serve::Exchange& exchange, RpcStream& stream, inside::Heard heard,
                   const std::optional<inside::ProcessEnd>& end) {
  switch (heard) {
    case inside::Heard::peer_left:
      return exchange.abandon();
    case inside::Heard::deadline:
      return stream.finish({.code = RpcCode::deadline_exceeded,
                            .message = "the stream's deadline passed before the process ended"});
    case inside::Heard::end:
      stream.send(end_message(*end));
      return stream.finish();
  }
}

std::uint16_t terminal_size(std::uint32_t size) {
  if (size > UINT16_MAX) fail(Code::invalid, "a terminal of {} rows or columns", size);
  return static_cast<std::uint16_t>(size);
}

void check_directory(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) fail(Code::invalid, "cwd '{}' does not exist", path);
  if (!S_ISDIR(status.st_mode)) fail(Code::invalid, "cwd '{}' is not a directory", path);
}

void write_input(inside::Process& process, const std::optional<ProcessInput>& input, int peer_fd) {
  if (input && input->in) return process.write(inside::Stream::output, input->in->data, peer_fd);
  if (input && input->pty)
    return process.write(inside::Stream::terminal, input->pty->data, peer_fd);
  fail(Code::invalid, "there is no input");
}

}  // namespace

inside::StartOrder Service::make_order(const StartRequest& request, const Call& call) const {
  if (!request.process || request.process->cmd.empty()) fail(Code::invalid, "no command was given");
  const ProcessConfig& config = *request.process;
  const guest::Settings settings = core_.settings();
  const Place place = place_of(call.user, config.cwd.value_or(""));
  inside::StartOrder order;
  order.config = {.program = config.cmd,
                  .arguments = config.args,
                  .environment = config.envs,
                  .directory = config.cwd};
  order.tag = request.tag;
  order.input = request.stdin_wanted.value_or(true);

  guest::ExecRequest& exec = order.request;
  exec.command.push_back(config.cmd);
  exec.command.insert(exec.command.end(), config.args.begin(), config.args.end());
  // Again, behind what goes by the user: the sandbox may have a HOME of its own.
  for (const auto& [name, value] : sandbox_variables(guest::environment_for_commands(settings)))
    exec.environment.push_back(name + '=' + value);
  for (const auto& [name, value] : config.envs) exec.environment.push_back(name + '=' + value);
  exec.user = call.user;
  // An image may lack the home that nobody asked for.
  if (!config.cwd.value_or("").empty() || !settings.directory.empty()) {
    check_directory(place.path);
    exec.directory = place.path;
  }
  if (request.pty) {
    const PtySize size = request.pty->size.value_or(PtySize{});
    exec.terminal = true;
    exec.rows = terminal_size(size.rows);
    exec.columns = terminal_size(size.cols);
  }
  if (call.timeout) {
    exec.timeout_milliseconds = static_cast<std::uint64_t>(
        std::chrono::ceil<std::chrono::milliseconds>(*call.timeout).count());
  }
  return order;
}

// What follows a start that does not fail.
void Service::rehearse() {
  encode(Codec::json, start_message(1));
  encode(Codec::json, data_message(inside::Stream::output, "said"));
  encode(Codec::json, end_message({}));
}

std::shared_ptr<inside::Process> Service::start_process(inside::StartOrder order) {
  const std::string program = order.config.program;
  try {
    return processes_.start(std::move(order));
  } catch (const Error& error) {
    if (error.code() == Code::exhausted || error.code() == Code::unavailable) throw;
    fail(Code::invalid, "error starting process '{}': {}", program, error.what());
  }
}

void Service::start(serve::Exchange& exchange, const Call& call) {
  const auto process = start_process(make_order(receive<StartRequest>(exchange, call), call));
  exchange.kept().set(0);
  RpcStream stream(exchange, call.codec);
  const auto heard = processes_.listen_as_starter(
      process, make_listener(stream, call, exchange.fd(), process->pid()));
  const auto end = process->end();
  if (heard == inside::Heard::end && end->timed_out) {
    return stream.finish({.code = RpcCode::deadline_exceeded,
                          .message = "the process was killed: it ran longer than it may"});
  }
  finish_stream(exchange, stream, heard, end);
}

void Service::connect(serve::Exchange& exchange, const Call& call) {
  const auto process = select(receive<SelectRequest>(exchange, call).process);
  RpcStream stream(exchange, call.codec);
  inside::Listener listener = make_listener(stream, call, exchange.fd(), process->pid());
  if (call.timeout) listener.deadline = Deadline::after(*call.timeout);
  const auto heard = process->listen(listener);
  finish_stream(exchange, stream, heard, process->end());
}

void Service::list(serve::Exchange& exchange, const Call& call) {
  receive<Empty>(exchange, call);
  ListResponse response;
  for (const auto& process : processes_.list()) {
    const inside::CommandConfig& config = process->config();
    ProcessInfo& info = response.processes.emplace_back();
    info.config = ProcessConfig{.cmd = config.program,
                                .args = config.arguments,
                                .envs = config.environment,
                                .cwd = config.directory};
    info.pid = process->pid();
    info.tag = process->tag();
  }
  answer(exchange, call, response);
}

std::shared_ptr<inside::Process> Service::select(const std::optional<ProcessSelector>& selector) {
  if (selector && selector->pid) return processes_.find(*selector->pid);
  if (selector && selector->tag) return processes_.find(*selector->tag);
  fail(Code::invalid, "the process is named neither by its pid nor by its tag");
}

std::shared_ptr<inside::Process> Service::select_running(
    const std::optional<ProcessSelector>& selector) {
  auto process = select(selector);
  if (process->is_gone()) fail(Code::not_found, "process with pid {} not found", process->pid());
  return process;
}

void Service::update(serve::Exchange& exchange, const Call& call) {
  const auto request = receive<UpdateRequest>(exchange, call);
  const auto process = select_running(request.process);
  if (request.pty && request.pty->size) {
    if (!process->has_terminal())
      throw RpcError(RpcCode::internal, "error resizing: the process has no terminal");
    process->resize(terminal_size(request.pty->size->rows), terminal_size(request.pty->size->cols));
  }
  answer(exchange, call, Empty{});
}

void Service::send_input(serve::Exchange& exchange, const Call& call) {
  const auto request = receive<SendInputRequest>(exchange, call);
  write_input(*select_running(request.process), request.input, exchange.fd());
  answer(exchange, call, Empty{});
}

void Service::stream_input(serve::Exchange& exchange, const Call& call) {
  EnvelopeReader messages(exchange.source(), &exchange.kept());
  std::shared_ptr<inside::Process> process;
  while (const auto envelope = messages.next()) {
    if ((envelope->flags & kEndOfStream) != 0) break;
    const auto request = decode<StreamInputRequest>(call.codec, envelope->payload);
    if (request.start) {
      process = select_running(request.start->process);
    } else if (request.data) {
      if (!process) fail(Code::invalid, "input came before it was said for which process");
      write_input(*process, request.data->input, exchange.fd());
    }
  }
  if (!process) fail(Code::invalid, "the stream did not say for which process it is");
  RpcStream stream(exchange, call.codec);
  stream.send(Empty{});
  stream.finish();
}

void Service::send_signal(serve::Exchange& exchange, const Call& call) {
  const auto request = receive<SendSignalRequest>(exchange, call);
  const auto process = select_running(request.process);
  if (request.signal != Signal::kill && request.signal != Signal::terminate)
    throw RpcError(RpcCode::unimplemented, "only SIGKILL and SIGTERM can be sent");
  process->send_signal(request.signal == Signal::kill ? SIGKILL : SIGTERM);
  answer(exchange, call, Empty{});
}

void Service::close_stdin(serve::Exchange& exchange, const Call& call) {
  const auto process = select_running(receive<SelectRequest>(exchange, call).process);
  if (process->has_terminal()) {
    throw RpcError(RpcCode::unknown,
                   "the stdin of a terminal cannot be closed; send Ctrl-D (0x04) instead");
  }
  process->close_input();
  answer(exchange, call, Empty{});
}

// A folder cannot be executed.
std::string make_rehearsal(const guest::Core& core) {
  constexpr std::string_view kMessage =
      R"({"process":{"cmd":"/","args":[],"envs":{},"cwd":"/"},"stdin":false})";
  const auto size = static_cast<char>(kMessage.size());
  return fmt::format(
      "POST /process.Process/Start HTTP/1.1\r\nHost: localhost\r\nX-Access-Token: {}\r\n"
      "Content-Type: application/connect+json\r\nContent-Length: {}\r\n\r\n{}{}",
      core.settings().token, 5 + kMessage.size(), std::string("\0\0\0\0", 4) + size, kMessage);
}

}  // namespace hearth::envd
