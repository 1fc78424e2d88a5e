// From an image's name to what is mounted.
//
// Two kinds: images in the store, which are layers and nothing else; and `host`, whose /usr is this
// machine's own (host_image.h). A snapshot of a sandbox made of `host` has two new layers, one for
// each; kBaseLabel says so.
#pragma once

#include <string>
#include <vector>

#include "image/store.h"
#include "runtime/host_image.h"

namespace hearth::runtime {

inline constexpr const char* kHostImage = "host";
// A label of images that stand on `host`: their layers are, bottom first, one of the root and one
// of /usr, by turns.
inline constexpr const char* kBaseLabel = "hearth.base";

struct ChosenImage {
  std::vector<std::string> layers;  // diff ids of the store, bottom first; none for `host`
  bool on_host = false;
  image::Config config;
  image::Lease lease;  // as long as it lives, the layers stay
};

class Images {
 public:
  // `store` must outlive it. `host_path` is where the folders of `host` are.
  Images(image::Store& store, std::string host_path)
      : store_(store), host_path_(std::move(host_path)) {}

  // Throws Error(not_found) with what there is.
  ChosenImage choose(const std::string& name);

  // The same for a sandbox that was found alive.
  ChosenImage choose_again(const std::vector<std::string>& layers, bool on_host);

  // Folders to mount.
  ImageLayers folders_of(const ChosenImage& image) const;

 private:
  image::Store& store_;
  std::string host_path_;
};

}  // namespace hearth::runtime
