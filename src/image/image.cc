#include "image/image.h"

#include <algorithm>

#include "base/error.h"

namespace hearth::image {
namespace {

// An image with more is an attack on whoever mounts it.
constexpr std::uint32_t kMaxLabels = 4096;

void put(wire::Writer& out, const Config& config) {
  out.texts(config.entrypoint).texts(config.command).texts(config.environment);
  out.text(config.directory).text(config.user).texts(config.ports).text(config.stop_signal);
  out.u32(static_cast<std::uint32_t>(config.labels.size()));
  for (const auto& [name, value] : config.labels) out.text(name).text(value);
}

Config read_config(wire::Reader& in) {
  Config config;
  config.entrypoint = in.texts();
  config.command = in.texts();
  config.environment = in.texts();
  config.directory = in.text();
  config.user = in.text();
  config.ports = in.texts();
  config.stop_signal = in.text();
  const std::uint32_t count = in.u32();
  if (count > kMaxLabels) fail(Code::invalid, "an image with {} labels", count);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::string name = in.text();
    if (!config.labels.empty() && name <= config.labels.rbegin()->first)
      fail(Code::invalid, "labels out of order at '{}'", name);
    config.labels[std::move(name)] = in.text();
  }
  return config;
}

Compression read_compression(wire::Reader& in) {
  const std::uint8_t number = in.u8();
  if (number > static_cast<std::uint8_t>(Compression::zstd))
    fail(Code::invalid, "there is no compression {}", number);
  return static_cast<Compression>(number);
}

}  // namespace

bool is_digest(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  constexpr std::size_t kDigits = 64;
  if (!text.starts_with(kPrefix) || text.size() != kPrefix.size() + kDigits) return false;
  return std::ranges::all_of(text.substr(kPrefix.size()), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

bool is_image_name(std::string_view text) {
  // With what a file name needs besides.
  constexpr std::size_t kMaxName = 240;
  const auto is_alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (text.empty() || text.size() > kMaxName || !is_alphanumeric(text.front())) return false;
  if (!std::ranges::all_of(text, [&](char c) {
        return is_alphanumeric(c) || std::string_view("._-/:@").find(c) != std::string_view::npos;
      }))
    return false;
  while (true) {
    const std::size_t slash = text.find('/');
    const std::string_view part = text.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

void put(wire::Writer& out, const Image& image) {
  out.text(image.name).text(image.id).texts(image.layers);
  put(out, image.config);
  out.text(image.architecture)
      .u64(static_cast<std::uint64_t>(image.created.time_since_epoch().count()))
      .u64(image.bytes);
}

Image read_image(wire::Reader& in) {
  Image image;
  image.name = in.text();
  image.id = in.text();
  image.layers = in.texts();
  image.config = read_config(in);
  image.architecture = in.text();
  image.created = Time(Duration(static_cast<Duration::rep>(in.u64())));
  image.bytes = in.u64();
  return image;
}

void put(wire::Writer& out, const LayerBlob& blob) {
  out.text(blob.digest).text(blob.diff_id).u8(static_cast<std::uint8_t>(blob.compression));
}

LayerBlob read_layer_blob(wire::Reader& in) {
  LayerBlob blob;
  blob.digest = in.text();
  blob.diff_id = in.text();
  blob.compression = read_compression(in);
  return blob;
}

}  // namespace hearth::image
