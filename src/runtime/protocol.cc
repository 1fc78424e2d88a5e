#include "runtime/protocol.h"

namespace hearth::runtime {
namespace {

// On the wire: do not renumber.
enum class RequestKind : std::uint8_t {
  hello = 1,
  create = 2,
  connect = 3,
  destroy = 4,
  get = 5,
  list = 6,
  shutdown = 7,
};
enum class ReplyKind : std::uint8_t { hello = 1, done = 2, sandboxes = 3, failed = 4 };

// No machine has room for more, and a reply must fit a message.
constexpr std::uint32_t kMaxSandboxes = 100'000;

wire::Writer& kind(wire::Writer& out, RequestKind value) {
  return out.u8(static_cast<std::uint8_t>(value));
}
wire::Writer& kind(wire::Writer& out, ReplyKind value) {
  return out.u8(static_cast<std::uint8_t>(value));
}

void put(wire::Writer& out, const Limits& limits) {
  out.u64(limits.memory_bytes).u32(limits.cpu_millis).u32(limits.pids).u64(limits.disk_bytes);
}

Limits read_limits(wire::Reader& in) {
  Limits limits;
  limits.memory_bytes = in.u64();
  limits.cpu_millis = in.u32();
  limits.pids = in.u32();
  limits.disk_bytes = in.u64();
  return limits;
}

void put(wire::Writer& out, const Sandbox& sandbox) {
  out.text(sandbox.id)
      .u8(static_cast<std::uint8_t>(sandbox.state))
      .text(sandbox.image)
      .u64(static_cast<std::uint64_t>(sandbox.created.time_since_epoch().count()))
      .u32(static_cast<std::uint32_t>(sandbox.pid));
  put(out, sandbox.limits);
  const Usage& usage = sandbox.usage;
  out.u64(usage.memory_bytes).u64(usage.memory_peak_bytes).u64(usage.cpu_microseconds);
  out.u64(usage.pids).u64(usage.oom_kills);
}

Sandbox read_sandbox(wire::Reader& in) {
  Sandbox sandbox;
  sandbox.id = in.text();
  sandbox.state =
      in.u8() == static_cast<std::uint8_t>(State::running) ? State::running : State::exited;
  sandbox.image = in.text();
  sandbox.created = Time(Duration(static_cast<Duration::rep>(in.u64())));
  sandbox.pid = static_cast<int>(in.u32());
  sandbox.limits = read_limits(in);
  Usage& usage = sandbox.usage;
  usage.memory_bytes = in.u64();
  usage.memory_peak_bytes = in.u64();
  usage.cpu_microseconds = in.u64();
  usage.pids = in.u64();
  usage.oom_kills = in.u64();
  return sandbox;
}

void put(wire::Writer& out, const HelloRequest&) {
  kind(out, RequestKind::hello);
}
void put(wire::Writer& out, const CreateRequest& request) {
  put(kind(out, RequestKind::create), request.spec);
}
void put(wire::Writer& out, const ConnectRequest& request) {
  kind(out, RequestKind::connect).text(request.id);
}
void put(wire::Writer& out, const DestroyRequest& request) {
  kind(out, RequestKind::destroy).text(request.id);
}
void put(wire::Writer& out, const GetRequest& request) {
  kind(out, RequestKind::get).text(request.id);
}
void put(wire::Writer& out, const ListRequest&) {
  kind(out, RequestKind::list);
}
void put(wire::Writer& out, const ShutdownRequest& request) {
  kind(out, RequestKind::shutdown).boolean(request.destroy_all);
}

void put(wire::Writer& out, const Hello& reply) {
  kind(out, ReplyKind::hello)
      .u32(reply.protocol)
      .text(reply.version)
      .u32(reply.pid)
      .text(reply.cgroups)
      .u32(reply.adopted)
      .u32(reply.swept);
}
void put(wire::Writer& out, const Done&) {
  kind(out, ReplyKind::done);
}
void put(wire::Writer& out, const Sandboxes& reply) {
  kind(out, ReplyKind::sandboxes).u32(static_cast<std::uint32_t>(reply.all.size()));
  for (const Sandbox& sandbox : reply.all) put(out, sandbox);
}
void put(wire::Writer& out, const Failed& reply) {
  kind(out, ReplyKind::failed).u8(static_cast<std::uint8_t>(reply.code)).text(reply.message);
}

template <typename Messages>
std::string encode_any(const Messages& message) {
  wire::Writer out;
  std::visit([&](const auto& one) { put(out, one); }, message);
  return std::move(out).take();
}

Request read_request(wire::Reader& in) {
  const std::uint8_t number = in.u8();
  switch (static_cast<RequestKind>(number)) {
    case RequestKind::hello:
      return HelloRequest{};
    case RequestKind::create:
      return CreateRequest{.spec = read_spec(in)};
    case RequestKind::connect:
      return ConnectRequest{.id = in.text()};
    case RequestKind::destroy:
      return DestroyRequest{.id = in.text()};
    case RequestKind::get:
      return GetRequest{.id = in.text()};
    case RequestKind::list:
      return ListRequest{};
    case RequestKind::shutdown:
      return ShutdownRequest{.destroy_all = in.boolean()};
  }
  fail(Code::invalid, "there is no runtime request {}", number);
}

Hello read_hello(wire::Reader& in) {
  Hello reply;
  reply.protocol = in.u32();
  reply.version = in.text();
  reply.pid = in.u32();
  reply.cgroups = in.text();
  reply.adopted = in.u32();
  reply.swept = in.u32();
  return reply;
}

Reply read_reply(wire::Reader& in) {
  const std::uint8_t number = in.u8();
  switch (static_cast<ReplyKind>(number)) {
    case ReplyKind::hello:
      return read_hello(in);
    case ReplyKind::done:
      return Done{};
    case ReplyKind::sandboxes: {
      const std::uint32_t count = in.u32();
      if (count > kMaxSandboxes) fail(Code::invalid, "a list of {} sandboxes", count);
      Sandboxes reply;
      for (std::uint32_t i = 0; i < count; ++i) reply.all.push_back(read_sandbox(in));
      return reply;
    }
    case ReplyKind::failed: {
      Failed reply;
      reply.code = code_from_number(in.u8());
      reply.message = in.text();
      return reply;
    }
  }
  fail(Code::invalid, "there is no runtime reply {}", number);
}

}  // namespace

void put(wire::Writer& out, const SandboxSpec& spec) {
  out.text(spec.id).text(spec.image).texts(spec.environment).text(spec.user);
  put(out, spec.limits);
  out.boolean(spec.ends_with_client);
}

SandboxSpec read_spec(wire::Reader& in) {
  SandboxSpec spec;
  spec.id = in.text();
  spec.image = in.text();
  spec.environment = in.texts();
  spec.user = in.text();
  spec.limits = read_limits(in);
  spec.ends_with_client = in.boolean();
  return spec;
}

std::string_view to_string(State state) {
  return state == State::running ? "running" : "exited";
}

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

}  // namespace hearth::runtime
