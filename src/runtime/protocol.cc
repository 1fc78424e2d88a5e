#include "runtime/protocol.h"

namespace hearth::runtime {
namespace {

// No machine has room for more, and a reply must fit a message.
constexpr std::uint32_t kMaxList = 100'000;

// One pair for each message: what follows its number.

void put_body(wire::Writer& out, const CreateRequest& message) {
  put(out, message.spec);
}
void read_body(wire::Reader& in, CreateRequest& message) {
  message.spec = read_spec(in);
}
void put_body(wire::Writer& out, const ShutdownRequest& message) {
  out.boolean(message.destroy_all);
}
void read_body(wire::Reader& in, ShutdownRequest& message) {
  message.destroy_all = in.boolean();
}
void put_body(wire::Writer& out, const PolicyRequest& message) {
  network::put(out.text(message.id), message.policy);
}
void read_body(wire::Reader& in, PolicyRequest& message) {
  message.id = in.text();
  message.policy = network::read_policy(in);
}
void put_body(wire::Writer& out, const CommitRequest& message) {
  out.text(message.id).text(message.name);
}
void read_body(wire::Reader& in, CommitRequest& message) {
  message.id = in.text();
  message.name = in.text();
}
void put_body(wire::Writer& out, const ForkRequest& message) {
  out.text(message.id).u32(message.count);
}
void read_body(wire::Reader& in, ForkRequest& message) {
  message.id = in.text();
  message.count = in.u32();
}
void put_body(wire::Writer& out, const HasLayerRequest& message) {
  out.text(message.diff_id);
}
void read_body(wire::Reader& in, HasLayerRequest& message) {
  message.diff_id = in.text();
}
void put_body(wire::Writer& out, const AddLayerRequest& message) {
  image::put(out, message.blob);
}
void read_body(wire::Reader& in, AddLayerRequest& message) {
  message.blob = image::read_layer_blob(in);
}
void put_body(wire::Writer& out, const PutImageRequest& message) {
  image::put(out, message.image);
}
void read_body(wire::Reader& in, PutImageRequest& message) {
  message.image = image::read_image(in);
}

void put_body(wire::Writer& out, const ConfigureRequest& message) {
  const Belongings& all = message.belongings;
  guest::put(out.text(message.id).text(all.hostname), all.configuration);
  put(out, all.volumes);
}
void read_body(wire::Reader& in, ConfigureRequest& message) {
  message.id = in.text();
  message.belongings.hostname = in.text();
  message.belongings.configuration = guest::read_configuration(in);
  message.belongings.volumes = read_mounts(in);
}
void put_body(wire::Writer& out, const ReplaceFilesRequest& message) {
  put(out.text(message.id), message.trees);
}
void read_body(wire::Reader& in, ReplaceFilesRequest& message) {
  message.id = in.text();
  message.trees = read_mounts(in);
}
void put_body(wire::Writer& out, const CreateVolumeRequest& message) {
  out.text(message.name).u64(message.bytes);
}
void read_body(wire::Reader& in, CreateVolumeRequest& message) {
  message.name = in.text();
  message.bytes = in.u64();
}

void put_body(wire::Writer& out, const ServicesRequest& message) {
  network::put(out.u32(message.name_server), message.services);
}
void read_body(wire::Reader& in, ServicesRequest& message) {
  const std::uint32_t port = in.u32();
  if (port > 65535) fail(Code::invalid, "{} is no port of a name server", port);
  message.name_server = static_cast<std::uint16_t>(port);
  message.services = network::read_services(in);
}

// Those that say nothing but their kind, an id, or a name.
template <typename T>
concept SaysNothing = std::is_empty_v<T>;
template <typename T>
concept SaysAnId = sizeof(T) == sizeof(std::string) && requires(T message) { message.id; };
template <typename T>
concept SaysAName = sizeof(T) == sizeof(std::string) && requires(T message) { message.name; };

void put_body(wire::Writer&, const SaysNothing auto&) {}
void read_body(wire::Reader&, SaysNothing auto&) {}
void put_body(wire::Writer& out, const SaysAnId auto& message) {
  out.text(message.id);
}
void read_body(wire::Reader& in, SaysAnId auto& message) {
  message.id = in.text();
}
void put_body(wire::Writer& out, const SaysAName auto& message) {
  out.text(message.name);
}
void read_body(wire::Reader& in, SaysAName auto& message) {
  message.name = in.text();
}

void put_body(wire::Writer& out, const Hello& reply) {
  out.u32(reply.protocol).text(reply.version).u32(reply.pid).text(reply.cgroups);
  out.u32(reply.adopted).u32(reply.swept).text(reply.network);
  out.u64(reply.warm).u64(reply.warm_hits).u64(reply.warm_misses);
}
void read_body(wire::Reader& in, Hello& reply) {
  reply.protocol = in.u32();
  reply.version = in.text();
  reply.pid = in.u32();
  reply.cgroups = in.text();
  reply.adopted = in.u32();
  reply.swept = in.u32();
  reply.network = in.text();
  reply.warm = in.u64();
  reply.warm_hits = in.u64();
  reply.warm_misses = in.u64();
}

std::uint32_t read_count(wire::Reader& in) {
  const std::uint32_t count = in.u32();
  if (count > kMaxList) fail(Code::invalid, "a list of {}", count);
  return count;
}

void put_body(wire::Writer& out, const Sandboxes& reply) {
  out.u32(static_cast<std::uint32_t>(reply.all.size()));
  for (const Sandbox& sandbox : reply.all) put(out, sandbox);
}
void read_body(wire::Reader& in, Sandboxes& reply) {
  for (std::uint32_t left = read_count(in); left > 0; --left) reply.all.push_back(read_sandbox(in));
}
void put_body(wire::Writer& out, const ImageList& reply) {
  out.u32(static_cast<std::uint32_t>(reply.all.size()));
  for (const image::Image& one : reply.all) image::put(out, one);
}
void read_body(wire::Reader& in, ImageList& reply) {
  for (std::uint32_t left = read_count(in); left > 0; --left)
    reply.all.push_back(image::read_image(in));
}
void put_body(wire::Writer& out, const VolumeList& reply) {
  out.u32(static_cast<std::uint32_t>(reply.all.size()));
  for (const Volume& volume : reply.all) {
    put_time(out.text(volume.name), volume.created);
    out.boolean(volume.used).u64(volume.size_bytes).u64(volume.taken_bytes);
  }
}
void read_body(wire::Reader& in, VolumeList& reply) {
  for (std::uint32_t left = read_count(in); left > 0; --left) {
    Volume volume;
    volume.name = in.text();
    volume.created = read_time(in);
    volume.used = in.boolean();
    volume.size_bytes = in.u64();
    volume.taken_bytes = in.u64();
    reply.all.push_back(std::move(volume));
  }
}
void put_body(wire::Writer& out, const LogList& reply) {
  out.u32(static_cast<std::uint32_t>(reply.starts.size()));
  for (const std::uint64_t start : reply.starts) out.u64(start);
}
void read_body(wire::Reader& in, LogList& reply) {
  for (std::uint32_t left = read_count(in); left > 0; --left) reply.starts.push_back(in.u64());
}
void put_body(wire::Writer& out, const Text& reply) {
  out.text(reply.text);
}
void read_body(wire::Reader& in, Text& reply) {
  reply.text = in.text();
}
void put_body(wire::Writer& out, const Failed& reply) {
  out.u8(static_cast<std::uint8_t>(reply.code)).text(reply.message);
}
void read_body(wire::Reader& in, Failed& reply) {
  reply.code = code_from_number(in.u8());
  reply.message = in.text();
}

// A message's number is its place in the variant, from 1.
template <typename Messages>
std::string encode_any(const Messages& message) {
  wire::Writer out;
  out.u8(static_cast<std::uint8_t>(message.index() + 1));
  std::visit([&](const auto& one) { put_body(out, one); }, message);
  return std::move(out).take();
}

template <typename Messages, std::size_t Place = 0>
Messages read_at(std::size_t place, wire::Reader& in) {
  if constexpr (Place == std::variant_size_v<Messages>) {
    fail(Code::invalid, "there is no runtime message {}", place + 1);
  } else {
    if (place != Place) return read_at<Messages, Place + 1>(place, in);
    std::variant_alternative_t<Place, Messages> message;
    read_body(in, message);
    return message;
  }
}

template <typename Messages>
Messages parse_any(std::string_view bytes) {
  return wire::parse_whole(bytes, [](wire::Reader& in) {
    const std::size_t number = in.u8();
    return read_at<Messages>(number - 1, in);
  });
}

}  // namespace

std::string encode(const Request& request) {
  return encode_any(request);
}
std::string encode(const Reply& reply) {
  return encode_any(reply);
}
Request parse_request(std::string_view bytes) {
  return parse_any<Request>(bytes);
}
Reply parse_reply(std::string_view bytes) {
  return parse_any<Reply>(bytes);
}

}  // namespace hearth::runtime
