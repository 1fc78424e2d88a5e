// What people call images.
#pragma once

#include <string>
#include <vector>

#include "image/image.h"

namespace hearth::cli {

// The name that an image is kept under, for a word that people write: "python" becomes
// "docker.io/library/python:latest"; "host" and ids stay as they are. Throws Error(invalid).
std::string full_image_name(const std::string& word);

// The images that `word` means: one by name, or all that have this id or begin of an id (6 digits
// or more). Empty when there is none.
std::vector<image::Image> find_images(const std::vector<image::Image>& images,
                                      const std::string& word);

// An image, as JSON.
std::string to_json(const image::Image& image);

}  // namespace hearth::cli
