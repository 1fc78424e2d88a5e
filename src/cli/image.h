// `hearth image`: the images of an engine, and how they get there.
//
// What comes from a registry or out of an archive is read here, with the rights of whoever calls;
// the runtime gets layers as files, checks and unpacks them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/verbs.h"
#include "image/image.h"

namespace hearth::cli {

struct ImagePullOptions {
  std::string state_dir;
  std::vector<std::string> names;
  std::vector<std::string> mirrors;
  std::string user;           // the password is read from standard input
  std::string docker_config;  // empty: the usual place
  std::string ca_file;        // empty: what the system trusts
  bool plain_http = false;
  bool quiet = false;
};

struct ImageLoadOptions {
  std::string state_dir;
  std::string path = "-";
  std::string name;
  bool quiet = false;
};

// What mmdebstrap shall make.
struct DebianOptions {
  std::string suite;  // empty: nothing
  std::vector<std::string> include;
  std::string mirror;
};

struct ImageImportOptions {
  std::string state_dir;
  std::string path;  // empty with debian
  DebianOptions debian;
  std::string name;
  image::Config config;
  bool quiet = false;
};

struct ImageLsOptions {
  std::string state_dir;
  Format format = Format::table;
};

struct ImageInspectOptions {
  std::string state_dir;
  std::vector<std::string> names;
};

struct ImageRmOptions {
  std::string state_dir;
  std::vector<std::string> names;
};

using ImageOrder = std::variant<ImagePullOptions, ImageLoadOptions, ImageImportOptions,
                                ImageLsOptions, ImageInspectOptions, ImageRmOptions>;

int image(const ImageOrder& order);

}  // namespace hearth::cli
