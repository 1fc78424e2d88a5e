// The image that needs no download: this machine's /usr, and an /etc made for it.
//
// Two layers. The root layer is a folder of ours: links such as /bin -> usr/bin, empty folders, two
// users (root and user), and an /etc with an allow-list of files that hold no secrets. The other
// one is the machine's own /usr, under a mask that hides everything in it that not everybody on the
// machine may read: inside, root is root, and would otherwise read it. The mask also gives `python`
// to a machine that calls it python3, and lets pip install. Nothing of /root, /home,
// /var, /etc or any other folder of the machine is part of it.
#pragma once

#include <string>
#include <vector>

#include "linux/fd.h"

namespace hearth::runtime {

// Folders to mount, topmost first.
struct ImageLayers {
  std::vector<std::string> root;
  std::vector<std::string> usr;  // empty: in `root`
};

// Builds the folders "root" and "mask" inside `folder_fd` (empty, ours). Reads all of /usr: about a
// second. Throws Error; Error(unavailable) on a machine whose /bin is not a link into /usr.
void make_host_image(int folder_fd);

// The layers of an image made that way; `path` names its folder.
ImageLayers host_image_layers(const std::string& path);

}  // namespace hearth::runtime
