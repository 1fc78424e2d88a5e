#include "guest/protocol.h"

#include "base/wire.h"

namespace hearth::guest {
namespace {

// On the wire: do not renumber.
enum class RequestKind : std::uint8_t {
  hello = 1,
  exec = 2,
  signal = 3,
  log = 4,
  stop = 5,
  attach = 6,
  end = 7,
  file = 8,
  connect = 10,
  ports = 11,
  configure = 12
};
enum class ReplyKind : std::uint8_t {
  hello = 1,
  started = 2,
  exited = 3,
  failed = 4,
  output = 5,
  connected = 10,
  ports = 11,
  configured = 12
};

void put(wire::Writer& out, const HelloRequest&) {
  out.u8(static_cast<std::uint8_t>(RequestKind::hello));
}

void put(wire::Writer& out, const ExecRequest& request) {
  out.u8(static_cast<std::uint8_t>(RequestKind::exec))
      .texts(request.command)
      .texts(request.environment)
      .text(request.directory)
      .text(request.user)
      .boolean(request.terminal)
      .u32(request.rows)
      .u32(request.columns)
      .u64(request.timeout_milliseconds)
      .boolean(request.only_end)
      .boolean(request.detached)
      .boolean(request.keep_input)
      .u8(static_cast<std::uint8_t>(request.restart))
      .u32(request.most_restarts)
      .boolean(request.main);
}

void put(wire::Writer& out, const SignalRequest& request) {
  out.u8(static_cast<std::uint8_t>(RequestKind::signal))
      .u32(request.signal)
      .boolean(request.to_group);
}

void put(wire::Writer& out, const LogRequest& request) {
  out.u8(static_cast<std::uint8_t>(RequestKind::log))
      .boolean(request.follow)
      .boolean(request.keep)
      .u64(request.from);
}

void put(wire::Writer& out, const StopRequest& request) {
  out.u8(static_cast<std::uint8_t>(RequestKind::stop))
      .u32(request.grace_milliseconds)
      .boolean(request.leave);
}

void put(wire::Writer& out, const ConnectRequest& request) {
  out.u8(static_cast<std::uint8_t>(RequestKind::connect)).u32(request.port);
}

void put(wire::Writer& out, const PortsRequest& request) {
  out.u8(static_cast<std::uint8_t>(RequestKind::ports)).boolean(request.follow);
}

void put(wire::Writer& out, const ConfigureRequest& request) {
  out.u8(static_cast<std::uint8_t>(RequestKind::configure));
  put(out, request.configuration);
}

void put(wire::Writer& out, const AttachRequest& request) {
  out.u8(static_cast<std::uint8_t>(RequestKind::attach)).u32(request.pid);
}

void put(wire::Writer& out, const EndRequest&) {
  out.u8(static_cast<std::uint8_t>(RequestKind::end));
}

void put(wire::Writer& out, const FileRequest& request) {
  out.u8(static_cast<std::uint8_t>(RequestKind::file)).text(request.path).u32(request.most);
}

void put(wire::Writer& out, const Hello& reply) {
  out.u8(static_cast<std::uint8_t>(ReplyKind::hello)).u32(reply.protocol).text(reply.version);
}

void put(wire::Writer& out, const Started& reply) {
  out.u8(static_cast<std::uint8_t>(ReplyKind::started)).u32(reply.pid);
}

void put(wire::Writer& out, const Exited& reply) {
  out.u8(static_cast<std::uint8_t>(ReplyKind::exited))
      .u32(static_cast<std::uint32_t>(reply.status.code))
      .u32(static_cast<std::uint32_t>(reply.status.signal))
      .boolean(reply.timed_out);
}

void put(wire::Writer& out, const Failed& reply) {
  out.u8(static_cast<std::uint8_t>(ReplyKind::failed))
      .u8(static_cast<std::uint8_t>(reply.code))
      .text(reply.message);
}

void put(wire::Writer& out, const Output& reply) {
  out.u8(static_cast<std::uint8_t>(ReplyKind::output))
      .text(reply.bytes)
      .u8(static_cast<std::uint8_t>(reply.stream))
      .u64(static_cast<std::uint64_t>(reply.time.time_since_epoch().count()))
      .u64(reply.position);
}

void put(wire::Writer& out, const Connected&) {
  out.u8(static_cast<std::uint8_t>(ReplyKind::connected));
}

void put(wire::Writer& out, const Ports& reply) {
  out.u8(static_cast<std::uint8_t>(ReplyKind::ports));
  out.u32(static_cast<std::uint32_t>(reply.listening.size()));
  for (const std::uint16_t port : reply.listening) out.u32(port);
}

void put(wire::Writer& out, const Configured&) {
  out.u8(static_cast<std::uint8_t>(ReplyKind::configured));
}

template <typename Messages>
std::string encode_any(const Messages& message) {
  wire::Writer out;
  std::visit([&](const auto& one) { put(out, one); }, message);
  return std::move(out).take();
}

std::uint16_t read_terminal_size(wire::Reader& in) {
  const std::uint32_t value = in.u32();
  if (value > UINT16_MAX) fail(Code::invalid, "a terminal of {} rows or columns", value);
  return static_cast<std::uint16_t>(value);
}

std::uint16_t read_port(wire::Reader& in) {
  const std::uint32_t port = in.u32();
  if (port < 1 || port > UINT16_MAX) fail(Code::invalid, "there is no port {}", port);
  return static_cast<std::uint16_t>(port);
}

Ports read_ports(wire::Reader& in) {
  const std::uint32_t count = in.u32();
  if (count > UINT16_MAX) fail(Code::invalid, "a list of {} ports", count);
  Ports reply;
  for (std::uint32_t i = 0; i < count; ++i) reply.listening.push_back(read_port(in));
  return reply;
}

ExecRequest read_exec(wire::Reader& in) {
  ExecRequest request;
  request.command = in.texts();
  request.environment = in.texts();
  request.directory = in.text();
  request.user = in.text();
  request.terminal = in.boolean();
  request.rows = read_terminal_size(in);
  request.columns = read_terminal_size(in);
  request.timeout_milliseconds = in.u64();
  request.only_end = in.boolean();
  request.detached = in.boolean();
  request.keep_input = in.boolean();
  const std::uint8_t restart = in.u8();
  if (restart > static_cast<std::uint8_t>(Restart::always))
    fail(Code::invalid, "there is no restart policy {}", restart);
  request.restart = static_cast<Restart>(restart);
  request.most_restarts = in.u32();
  request.main = in.boolean();
  return request;
}

LogRequest read_log(wire::Reader& in) {
  LogRequest request;
  request.follow = in.boolean();
  request.keep = in.boolean();
  request.from = in.u64();
  return request;
}

Request read_request(wire::Reader& in) {
  const std::uint8_t kind = in.u8();
  switch (static_cast<RequestKind>(kind)) {
    case RequestKind::hello:
      return HelloRequest{};
    case RequestKind::exec:
      return read_exec(in);
    case RequestKind::signal: {
      const std::uint32_t signal = in.u32();
      return SignalRequest{.signal = signal, .to_group = in.boolean()};
    }
    case RequestKind::log:
      return read_log(in);
    case RequestKind::stop: {
      const std::uint32_t grace = in.u32();
      return StopRequest{.grace_milliseconds = grace, .leave = in.boolean()};
    }
    case RequestKind::file: {
      std::string path = in.text();
      return FileRequest{.path = std::move(path), .most = in.u32()};
    }
    case RequestKind::connect:
      return ConnectRequest{.port = read_port(in)};
    case RequestKind::ports:
      return PortsRequest{.follow = in.boolean()};
    case RequestKind::configure:
      return ConfigureRequest{.configuration = read_configuration(in)};
    case RequestKind::attach:
      return AttachRequest{.pid = in.u32()};
    case RequestKind::end:
      return EndRequest{};
  }
  fail(Code::invalid, "there is no guest request {}", kind);
}

Exited read_exited(wire::Reader& in) {
  Exited reply;
  reply.status.code = static_cast<int>(in.u32() & 0xff);
  reply.status.signal = static_cast<int>(in.u32() & 0x7f);
  reply.timed_out = in.boolean();
  return reply;
}

Output read_output(wire::Reader& in) {
  Output reply;
  reply.bytes = in.text();
  const std::uint8_t stream = in.u8();
  if (stream != static_cast<std::uint8_t>(Stream::output) &&
      stream != static_cast<std::uint8_t>(Stream::error)) {
    fail(Code::invalid, "there is no stream {}", stream);
  }
  reply.stream = static_cast<Stream>(stream);
  reply.time = Time(Duration(static_cast<Duration::rep>(in.u64())));
  reply.position = in.u64();
  return reply;
}

Reply read_reply(wire::Reader& in) {
  const std::uint8_t kind = in.u8();
  switch (static_cast<ReplyKind>(kind)) {
    case ReplyKind::hello: {
      Hello reply;
      reply.protocol = in.u32();
      reply.version = in.text();
      return reply;
    }
    case ReplyKind::started:
      return Started{.pid = in.u32()};
    case ReplyKind::exited:
      return read_exited(in);
    case ReplyKind::failed: {
      Failed reply;
      reply.code = code_from_number(in.u8());
      reply.message = in.text();
      return reply;
    }
    case ReplyKind::output:
      return read_output(in);
    case ReplyKind::connected:
      return Connected{};
    case ReplyKind::ports:
      return read_ports(in);
    case ReplyKind::configured:
      return Configured{};
  }
  fail(Code::invalid, "there is no guest reply {}", kind);
}

}  // namespace

std::string encode(const Request& request) {
  return encode_any(request);
}
std::string encode(const Reply& reply) {
  return encode_any(reply);
}

Request parse_request(std::string_view bytes) {
  return wire::parse_whole(bytes, read_request);
}

Reply parse_reply(std::string_view bytes) {
  return wire::parse_whole(bytes, read_reply);
}

}  // namespace hearth::guest
