// What an image is, once it is here: a name, the layers it is made of, and what it says about how
// to run it.
//
// Layers are named by the digest of their uncompressed tar archive (OCI's "diff id"), so that a
// layer is the same layer however it travelled.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/wire.h"

namespace hearth::image {

// "sha256:" and 64 lower-case hexadecimal digits.
bool is_digest(std::string_view text);

// A name that an image can be kept under: 1 to 240 characters of a-z, A-Z, 0-9 and "._-/:@", the
// first a letter or digit, no part between slashes empty, "." or "..".
bool is_image_name(std::string_view text);

// How it wants to be run; everything may be empty. Names of users are looked up inside.
struct Config {
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::vector<std::string> environment;  // NAME=value
  std::string directory;                 // to start in
  std::string user;                      // name, uid, or either with ":group"
  std::vector<std::string> ports;        // "8080/tcp"
  std::map<std::string, std::string> labels;
  std::string stop_signal;

  bool operator==(const Config&) const = default;
};

struct Image {
  std::string name;                 // as people ask for it: "docker.io/library/python:3.12"
  std::string id;                   // digest of what defines it
  std::vector<std::string> layers;  // diff ids, bottom first
  Config config;
  std::string architecture;
  Time created;             // says the image
  std::uint64_t bytes = 0;  // of its layers, unpacked; layers that it shares count in full

  bool operator==(const Image&) const = default;
};

// Crosses process boundaries as a number: do not renumber.
enum class Compression : std::uint8_t { none = 0, gzip = 1, zstd = 2 };

// A layer on its way here: an archive to be unpacked.
struct LayerBlob {
  std::string digest;   // of the bytes as they travel; empty: not known, not checked
  std::string diff_id;  // of the archive inside; empty: not known, whatever it turns out to be
  Compression compression = Compression::none;
};

void put(wire::Writer& out, const Image& image);
Image read_image(wire::Reader& in);
void put(wire::Writer& out, const LayerBlob& blob);
LayerBlob read_layer_blob(wire::Reader& in);

}  // namespace hearth::image
