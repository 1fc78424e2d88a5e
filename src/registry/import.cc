// The part of load.h that makes images of root file systems.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json_text.h"
#include "base/time_text.h"
#include "registry/archive_files.h"
#include "registry/digest.h"
#include "registry/load.h"
#include "registry/manifest.h"
#include "registry/reference.h"
#include "registry/scratch.h"
#include "registry/tar_reader_internal.h"

namespace hearth::registry {
namespace {

std::string json_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ",") + json_quote(text);
  return '[' + list + ']';
}

// An image is known by the digest of its configuration; so ours get one. Only for the digest: it is
// kept nowhere.
std::string id_of(const image::Image& image) {
  const image::Config& config = image.config;
  std::string labels;
  for (const auto& [name, value] : config.labels) {
    labels += (labels.empty() ? "" : ",") + json_quote(name) + ':' + json_quote(value);
  }
  return sha256_of(fmt::format(
      R"({{"architecture":{},"config":{{"Cmd":{},"Entrypoint":{},"Env":{},"ExposedPorts":{},)"
      R"("Labels":{{{}}},"StopSignal":{},"User":{},"WorkingDir":{}}},"os":"linux",)"
      R"("rootfs":{{"diff_ids":{},"type":"layers"}}}})",
      json_quote(image.architecture), json_list(config.command), json_list(config.entrypoint),
      json_list(config.environment), json_list(config.ports), labels,
      json_quote(config.stop_signal), json_quote(config.user), json_quote(config.directory),
      json_list(image.layers)));
}

image::Image put(const std::string& diff_id, const ImportOptions& options, Sink& sink) {
  image::Image image{.name = parse_reference(options.name).text(),
                     .layers = {diff_id},
                     .config = options.config,
                     .architecture = this_platform().architecture,
                     .created = SystemClock().now()};
  image.id = id_of(image);
  sink.put_image(image);
  return image;
}

// The store would find out too, and could say less about it.
void check_is_tar(int file_fd) {
  TarReader reader(file_fd, TarReader::Wrapping::compressed);
  TarReader::Entry entry;
  if (!reader.next(entry)) fail(Code::invalid, "the archive is empty");
  if (::lseek(file_fd, 0, SEEK_SET) != 0) throw_errno("seek in the archive");
}

image::Image import_folder(int dir_fd, const ImportOptions& options, Sink& sink,
                           Progress& progress) {
  LayerProgress state{.digest = options.name, .step = Step::unpacking};
  progress.report(state);
  const std::string diff_id = sink.add_folder(dir_fd);
  state.step = Step::done;
  progress.report(state);
  return put(diff_id, options, sink);
}

}  // namespace

image::Image import_root(int archive_fd, const ImportOptions& options, Sink& sink,
                         Progress& progress) {
  parse_reference(options.name);  // before any work is done
  const linux::Fd scratch = open_scratch(options.scratch);
  linux::Fd file = as_regular_file(archive_fd, scratch.get());
  const Wrapping wrapping = wrapping_of(file.get());
  if (wrapping == Wrapping::other) file = unwrapped(file.get(), scratch.get());
  check_is_tar(file.get());
  image::LayerBlob blob;
  if (wrapping == Wrapping::gzip) blob.compression = image::Compression::gzip;
  if (wrapping == Wrapping::zstd) blob.compression = image::Compression::zstd;
  LayerProgress state{.digest = options.name, .step = Step::unpacking};
  progress.report(state);
  const std::string diff_id = sink.add_layer(file.get(), blob);
  state.step = Step::done;
  progress.report(state);
  return put(diff_id, options, sink);
}

image::Image import_root(const std::string& path, const ImportOptions& options, Sink& sink,
                         Progress& progress) {
  if (path == "-") return import_root(STDIN_FILENO, options, sink, progress);
  parse_reference(options.name);
  const linux::Fd input = linux::open_file(path, O_RDONLY | O_NOCTTY);
  struct stat info{};
  if (::fstat(input.get(), &info) != 0) throw_errno("look at '{}'", path);
  try {
    if (S_ISDIR(info.st_mode)) return import_folder(input.get(), options, sink, progress);
    return import_root(input.get(), options, sink, progress);
  } catch (const Error& error) {
    if (error.code() != Code::invalid) throw;
    fail(Code::invalid, "'{}': {}", path, error.what());
  }
}

}  // namespace hearth::registry
