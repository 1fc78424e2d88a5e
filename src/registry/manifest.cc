#include "registry/manifest.h"

#include <algorithm>
#include <optional>

#include <boost/json/value.hpp>

#include "base/error.h"
#include "registry/json_internal.h"

namespace hearth::registry {
namespace {

namespace json = boost::json;

constexpr std::string_view kOciIndex = "application/vnd.oci.image.index.v1+json";
constexpr std::string_view kOciManifest = "application/vnd.oci.image.manifest.v1+json";
constexpr std::string_view kDockerIndex =
    "application/vnd.docker.distribution.manifest.list.v2+json";
constexpr std::string_view kDockerManifest = "application/vnd.docker.distribution.manifest.v2+json";
constexpr std::string_view kDockerSchema1 = "application/vnd.docker.distribution.manifest.v1";
constexpr std::string_view kOciConfig = "application/vnd.oci.image.config.v1+json";
constexpr std::string_view kDockerConfig = "application/vnd.docker.container.image.v1+json";

// overlayfs takes 500; Docker makes at most 127.
constexpr std::size_t kMaxLayers = 500;
constexpr std::size_t kMaxEntries = 1024;

Descriptor parse_descriptor(const json::object& object) {
  Descriptor descriptor{.media_type = find_text(object, "mediaType"),
                        .digest = find_text(object, "digest"),
                        .size = get_size(object, "size")};
  if (!image::is_digest(descriptor.digest)) {
    fail(Code::invalid, "the manifest names a blob by something that is no SHA-256 digest");
  }
  return descriptor;
}

Platform parse_platform(const json::object& object) {
  return {.os = find_text(object, "os"),
          .architecture = find_text(object, "architecture"),
          .variant = find_text(object, "variant")};
}

// Docker and containerd write the whole name, others a name or just a tag.
std::string name_of(const json::object& entry) {
  const json::object* annotations = find_object(entry, "annotations");
  if (annotations == nullptr) return {};
  if (auto name = find_text(*annotations, "io.containerd.image.name"); !name.empty()) return name;
  auto name = find_text(*annotations, "org.opencontainers.image.ref.name");
  return name.find_first_of("/:") == std::string::npos ? std::string() : name;
}

Index parse_index(const json::array& manifests) {
  if (manifests.size() > kMaxEntries) {
    fail(Code::invalid, "the index names more than {} manifests", kMaxEntries);
  }
  Index index;
  for (const json::value& value : manifests) {
    const json::object& entry = object_of(value, "a part of the index");
    const json::object* platform = find_object(entry, "platform");
    index.entries.push_back({.manifest = parse_descriptor(entry),
                             .platform = platform ? parse_platform(*platform) : Platform{},
                             .name = name_of(entry)});
  }
  return index;
}

Manifest parse_manifest(const json::object& object) {
  const json::object* config = find_object(object, "config");
  const json::array* layers = find_array(object, "layers");
  if (config == nullptr || layers == nullptr) {
    fail(Code::invalid, "the manifest has no configuration or no layers");
  }
  Manifest manifest{.config = parse_descriptor(*config)};
  const std::string& type = manifest.config.media_type;
  if (type != kOciConfig && type != kDockerConfig) {
    fail(Code::invalid, "this is no image of a file system but something else ('{}')",
         std::string_view(type).substr(0, 100));
  }
  if (layers->size() > kMaxLayers) {
    fail(Code::invalid, "the image has {} layers; the kernel takes {}", layers->size(), kMaxLayers);
  }
  for (const json::value& layer : *layers) {
    manifest.layers.push_back(parse_descriptor(object_of(layer, "a layer of the manifest")));
  }
  return manifest;
}

// Which of several variants to take: the lower, the better; nothing for those that may not run. (A
// "v3" of amd64 needs instructions that not every machine has.)
std::optional<int> rank_of(const Platform& platform, const Platform& here) {
  if (platform.os != here.os || platform.architecture != here.architecture) return std::nullopt;
  if (platform.variant == here.variant) return 0;
  if (platform.variant.empty() || here.variant.empty()) return 1;
  return std::nullopt;
}

std::string describe(const Platform& platform) {
  std::string text = platform.os + '/' + platform.architecture;
  if (!platform.variant.empty()) text += '/' + platform.variant;
  return text;
}

}  // namespace

Platform this_platform() {
  Platform here{.os = "linux"};
#if defined(__x86_64__)
  here.architecture = "amd64";
  here.variant = "v1";
#elif defined(__aarch64__)
  here.architecture = "arm64";
  here.variant = "v8";
#elif defined(__riscv) && __riscv_xlen == 64
  here.architecture = "riscv64";
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
  here.architecture = "ppc64le";
#elif defined(__s390x__)
  here.architecture = "s390x";
#elif defined(__loongarch64)
  here.architecture = "loong64";
#else
#error "which architecture is this, in Go's words?"
#endif
  return here;
}

Document parse_document(std::string_view text, std::string_view content_type) {
  const json::value value = parse_json(text, "the manifest");
  const json::object& object = object_of(value, "the manifest");
  std::string type = find_text(object, "mediaType");
  if (type.empty()) type = content_type.substr(0, content_type.find(';'));
  const json::value* version = object.if_contains("schemaVersion");
  const bool is_old = version != nullptr && version->is_int64() && version->get_int64() == 1;
  if (is_old || type.starts_with(kDockerSchema1)) {
    fail(Code::invalid,
         "the image is in Docker's old format (schema 1), which names no layers that can be "
         "checked; push it again with a tool of this decade");
  }
  const json::array* manifests = find_array(object, "manifests");
  // Who reads it one way and who reads it the other would get different images of one digest.
  if (manifests != nullptr && object.contains("layers")) {
    fail(Code::invalid, "the manifest is an index and an image at the same time");
  }
  const bool is_index = manifests != nullptr;
  const bool says_index = type == kOciIndex || type == kDockerIndex;
  const bool says_manifest = type == kOciManifest || type == kDockerManifest;
  if ((is_index && says_manifest) || (!is_index && says_index)) {
    fail(Code::invalid, "the manifest is not of the type that it says it is");
  }
  if (is_index) return parse_index(*manifests);
  return parse_manifest(object);
}

const Descriptor& choose(const Index& index, const Platform& platform) {
  const Index::Entry* best = nullptr;
  int best_rank = 0;
  std::string others;
  for (const Index::Entry& entry : index.entries) {
    const auto rank = rank_of(entry.platform, platform);
    if (rank && (best == nullptr || *rank < best_rank)) {
      best = &entry;
      best_rank = *rank;
    }
    // "unknown" are signatures and other papers that travel with the image.
    const bool is_image = !entry.platform.os.empty() && entry.platform.os != "unknown";
    if (is_image && others.size() < 200)
      others += (others.empty() ? "" : ", ") + describe(entry.platform);
  }
  if (best != nullptr) return best->manifest;
  // An index that does not say what its only image is for: the configuration will.
  if (index.entries.size() == 1 && index.entries[0].platform.os.empty()) {
    return index.entries[0].manifest;
  }
  fail(Code::not_found, "the image is not made for {}/{}, only for '{}'", platform.os,
       platform.architecture, others);
}

std::string_view accepted_documents() {
  return "application/vnd.oci.image.index.v1+json, "
         "application/vnd.oci.image.manifest.v1+json, "
         "application/vnd.docker.distribution.manifest.list.v2+json, "
         "application/vnd.docker.distribution.manifest.v2+json";
}

image::Compression compression_of(std::string_view media_type, std::string_view first_bytes) {
  constexpr std::string_view kGzip("\x1f\x8b", 2);
  constexpr std::string_view kZstd("\x28\xb5\x2f\xfd", 4);
  if (first_bytes.starts_with(kGzip)) return image::Compression::gzip;
  if (first_bytes.starts_with(kZstd)) return image::Compression::zstd;
  // zstd may begin with a frame to be skipped (0x184D2A50 to ...5F), which says what it is not.
  const bool is_skippable = first_bytes.size() >= 4 && (first_bytes[0] & 0xf0) == 0x50 &&
                            first_bytes.substr(1, 3) == "\x2a\x4d\x18";
  if (is_skippable && media_type.ends_with("zstd")) return image::Compression::zstd;
  return image::Compression::none;
}

}  // namespace hearth::registry
