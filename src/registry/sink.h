// Where images go, and who wants to hear how far they are.
//
// This room gets images from registries, archives and folders; it does not keep them. Whoever does
// is a Sink: the runtime's store behind its socket, or a list in a test.
#pragma once

#include <cstdint>
#include <string>

#include "image/image.h"

namespace hearth::registry {

// Called from one thread at a time.
class Sink {
 public:
  virtual ~Sink() = default;

  virtual bool has_layer(const std::string& diff_id) = 0;
  // Unpacks the archive in `blob_fd`, a regular file that is at its beginning, and returns its diff
  // id. Throws Error(invalid) when it is not what the digests in `blob` say.
  virtual std::string add_layer(int blob_fd, const image::LayerBlob& blob) = 0;
  // A folder as it is, and the diff id that it gets.
  virtual std::string add_folder(int dir_fd) = 0;
  // All of its layers are there. An image of the same name is replaced.
  virtual void put_image(const image::Image& image) = 0;
};

enum class Step {
  present,      // was here before
  downloading,  // `bytes` of `total` so far
  unpacking,    //
  done,         //
};

struct LayerProgress {
  std::string digest;  // as it travels, or another word that people know it by
  Step step = Step::downloading;
  std::uint64_t bytes = 0;
  std::uint64_t total = 0;
};

// Thread-safe: layers come several at a time.
class Progress {
 public:
  virtual ~Progress() = default;

  virtual void report(const LayerProgress& layer) = 0;
  // A sentence that is no error yet: "trying again in 2s: ...".
  virtual void note(const std::string& text) = 0;
};

}  // namespace hearth::registry
