// Images from files: what `docker save`, `podman save` and `skopeo copy` write, as a tar archive
// (also compressed), and OCI layouts in folders.
#pragma once

#include <string>
#include <vector>

#include "registry/sink.h"

namespace hearth::registry {

struct LoadOptions {
  std::string scratch;    // a folder for what must be unpacked on the way; made if it is not there
  std::string name = {};  // for an image that has none in the archive
};

// `path` may be "-": standard input. Returns the names of the images, of which there is at least
// one. Throws Error: not_found, invalid (broken, or no archive of images), exhausted.
std::vector<std::string> load(const std::string& path, const LoadOptions& options, Sink& sink,
                              Progress& progress);

struct ImportOptions {
  std::string scratch;   // as above
  std::string name;      // of the image to be
  image::Config config;  // how to run it
};

// A root file system in a tar archive (also compressed), in a folder, or on standard input ("-")
// becomes an image of one layer. Throws Error as above.
image::Image import_root(const std::string& path, const ImportOptions& options, Sink& sink,
                         Progress& progress);

// The same from an open file, which need not be a regular one.
image::Image import_root(int archive_fd, const ImportOptions& options, Sink& sink,
                         Progress& progress);

}  // namespace hearth::registry
