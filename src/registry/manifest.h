// The documents that describe images: indexes (one image for several kinds of machine), manifests
// (which blobs an image is made of), configurations (how it wants to be run). OCI's and Docker's.
//
// Pure: text in, values out. The text is a stranger's; everything throws Error(invalid).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "image/image.h"

namespace hearth::registry {

// Of one document. The distribution specification asks registries to take manifests of 4 MiB.
inline constexpr std::size_t kMaxDocument = std::size_t{4} << 20;

struct Descriptor {
  std::string media_type;
  std::string digest;
  std::uint64_t size = 0;
};

struct Platform {
  std::string os;
  std::string architecture;  // Go's names: "amd64", "arm64"
  std::string variant;       // "v8"
};

// The kind of machine that this is.
Platform this_platform();

struct Manifest {
  Descriptor config;
  std::vector<Descriptor> layers;  // bottom first
};

struct Index {
  struct Entry {
    Descriptor manifest;
    Platform platform;  // empty: not said
    std::string name;   // of an image in an OCI layout, or empty
  };
  std::vector<Entry> entries;
};

using Document = std::variant<Manifest, Index>;

// `content_type` is what came with it, and may be empty; what the document says about itself wins.
Document parse_document(std::string_view json, std::string_view content_type);

// The best entry for `platform`. Throws Error(not_found) that lists what there is.
const Descriptor& choose(const Index& index, const Platform& platform);

struct ImageConfig {
  image::Config config;
  Platform platform;
  Time created;
  std::vector<std::string> diff_ids;  // of the layers, bottom first
};

ImageConfig parse_image_config(std::string_view json);

// Throws Error(invalid) for an image that is not for this kind of machine, or whose manifest and
// configuration do not agree about its layers.
void check_image(const Manifest& manifest, const ImageConfig& config, const Platform& here);

// What the first bytes of a blob say. `media_type` only decides where they say nothing.
image::Compression compression_of(std::string_view media_type, std::string_view first_bytes);

// What a registry shall answer with, for the Accept field.
std::string_view accepted_documents();

}  // namespace hearth::registry
