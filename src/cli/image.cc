#include "cli/image.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/time_text.h"
#include "cli/command.h"
#include "cli/debian.h"
#include "cli/image_names.h"
#include "cli/image_progress.h"
#include "cli/json_object.h"
#include "cli/table.h"
#include "cli/values.h"
#include "node/runtime_sink.h"
#include "registry/load.h"
#include "registry/pull.h"
#include "runtime/client.h"

namespace hearth::cli {
namespace {

// Of an environment variable; empty when there is none.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

// Where downloads go on after they were cut off. Not in the state folder, which may be the
// engine's and not ours.
std::string downloads_folder() {
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) {
    return cache + "/hearth/downloads";
  }
  if (::geteuid() == 0) return "/var/cache/hearth/downloads";
  if (const std::string home = variable("HOME"); !home.empty()) {
    return home + "/.cache/hearth/downloads";
  }
  return fmt::format("/tmp/hearth-downloads-{}", ::geteuid());
}

// The first line, without its end. A person would see what they type, so: from a file or a pipe.
std::string read_password() {
  constexpr std::size_t kMost = 64 << 10;
  std::string text;
  char c = 0;
  while (::read(STDIN_FILENO, &c, 1) == 1 && c != '\n') {
    if (text.size() == kMost) fail(Code::invalid, "a password of more than {} bytes", kMost);
    text += c;
  }
  if (text.ends_with('\r')) text.pop_back();
  if (text.empty()) fail(Code::invalid, "--password-stdin: there is nothing on standard input");
  return text;
}

registry::DockerConfig docker_config(const std::string& path) {
  if (path.empty()) return registry::read_docker_config(registry::default_docker_config_path());
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) throw_errno("--docker-config: '{}'", path);
  return registry::read_docker_config(path);
}

struct Perform {
  int operator()(const ImagePullOptions& options) const;
  int operator()(const ImageLoadOptions& options) const;
  int operator()(const ImageImportOptions& options) const;
  int operator()(const ImageLsOptions& options) const;
  int operator()(const ImageInspectOptions& options) const;
  int operator()(const ImageRmOptions& options) const;
};

int Perform::operator()(const ImagePullOptions& options) const {
  std::vector<registry::Reference> references;
  for (const std::string& name : options.names) {
    references.push_back(registry::parse_reference(name));
  }
  registry::PullOptions pull{.downloads = downloads_folder(),
                             .docker_config = docker_config(options.docker_config),
                             .mirrors = options.mirrors,
                             .plain_http = options.plain_http,
                             .ca_file = options.ca_file};
  if (!options.user.empty()) {
    pull.credentials = {.username = options.user, .password = read_password()};
  }
  runtime::RuntimeClient runtime(options.state_dir);
  node::RuntimeSink sink(runtime);
  const auto progress = make_progress(progress_kind(stderr, options.quiet), stderr);
  for (const registry::Reference& reference : references) {
    std::puts(registry::pull(reference, pull, sink, *progress).name.c_str());
  }
  return 0;
}

int Perform::operator()(const ImageLoadOptions& options) const {
  if (options.path == "-" && ::isatty(STDIN_FILENO) != 0) {
    fail(Code::invalid, "name a file, or pipe an archive in");
  }
  runtime::RuntimeClient runtime(options.state_dir);
  node::RuntimeSink sink(runtime);
  const auto progress = make_progress(progress_kind(stderr, options.quiet), stderr);
  const registry::LoadOptions load{.scratch = downloads_folder(), .name = options.name};
  for (const std::string& name : registry::load(options.path, load, sink, *progress)) {
    std::puts(name.c_str());
  }
  return 0;
}

int Perform::operator()(const ImageImportOptions& options) const {
  const registry::ImportOptions import{
      .scratch = downloads_folder(), .name = options.name, .config = options.config};
  full_image_name(options.name);  // before anything takes long
  runtime::RuntimeClient runtime(options.state_dir);
  node::RuntimeSink sink(runtime);
  const auto progress = make_progress(progress_kind(stderr, options.quiet), stderr);
  image::Image image;
  if (options.debian.suite.empty()) {
    image = registry::import_root(options.path, import, sink, *progress);
  } else {
    const linux::Fd archive = make_debian_archive(options.debian, import.scratch, options.quiet);
    image = registry::import_root(archive.get(), import, sink, *progress);
  }
  std::puts(image.name.c_str());
  return 0;
}

int Perform::operator()(const ImageLsOptions& options) const {
  const auto images = runtime::RuntimeClient(options.state_dir).list_images();
  if (options.format == Format::json) {
    std::vector<std::string> elements;
    for (const image::Image& image : images) elements.push_back(to_json(image));
    std::fputs(json_array(elements).c_str(), stdout);
    return 0;
  }
  if (options.format == Format::id) {
    for (const image::Image& image : images) std::puts(image.name.c_str());
    return 0;
  }
  std::vector<Row> rows;
  const Time now = SystemClock().now();
  for (const image::Image& image : images) {
    const bool is_dated = image.created > Time();
    rows.push_back({image.name, image.id.substr(image.id.find(':') + 1, 12),
                    std::to_string(image.layers.size()), format_size(image.bytes),
                    is_dated ? format_age(now - image.created) : "-"});
  }
  std::fputs(format_table({"NAME", "ID", "LAYERS", "SIZE", "AGE"}, rows).c_str(), stdout);
  return 0;
}

// Calls `act` for every image that the names mean; says which name means none.
template <typename F>
int for_each_named(runtime::RuntimeClient& runtime, const std::vector<std::string>& names, F act) {
  const auto images = runtime.list_images();
  int exit_code = 0;
  for (const std::string& name : names) {
    const auto found = find_images(images, name);
    for (const image::Image& image : found) act(image);
    if (!found.empty()) continue;
    complain("image", fmt::format("there is no image '{}'", name));
    exit_code = kExitFailure;
  }
  return exit_code;
}

int Perform::operator()(const ImageInspectOptions& options) const {
  runtime::RuntimeClient runtime(options.state_dir);
  std::vector<std::string> elements;
  const int exit_code = for_each_named(runtime, options.names, [&](const image::Image& image) {
    elements.push_back(to_json(image));
  });
  std::fputs(json_array(elements).c_str(), stdout);
  return exit_code;
}

int Perform::operator()(const ImageRmOptions& options) const {
  runtime::RuntimeClient runtime(options.state_dir);
  return for_each_named(runtime, options.names, [&](const image::Image& image) {
    runtime.remove_image(image.name);
    std::puts(image.name.c_str());
  });
}

}  // namespace

int image(const ImageOrder& order) {
  return std::visit(Perform{}, order);
}

}  // namespace hearth::cli
