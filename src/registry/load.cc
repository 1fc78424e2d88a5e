#include "registry/load.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include <boost/json/value.hpp>

#include "base/error.h"
#include "registry/archive_files.h"
#include "registry/digest.h"
#include "registry/json_internal.h"
#include "registry/manifest.h"
#include "registry/reference.h"
#include "registry/scratch.h"

namespace hearth::registry {
namespace {

namespace json = boost::json;

// How deep an index may lead to another: OCI layouts have one above each image that is made for
// several kinds of machine.
constexpr int kMaxDepth = 3;

std::string blob_path(const std::string& digest) {
  return "blobs/sha256/" + digest.substr(digest.find(':') + 1);
}

class Load {
 public:
  Load(ArchiveFiles& files, const LoadOptions& options, Sink& sink, Progress& progress)
      : files_(files), options_(options), sink_(sink), progress_(progress) {}

  std::vector<std::string> run() {
    if (files_.has("manifest.json")) {
      load_docker();
    } else if (files_.has("index.json")) {
      load_oci();
    } else {
      fail(Code::invalid,
           "there are no images in it (neither manifest.json nor index.json); a root file system "
           "is for 'hearth image import'");
    }
    return std::move(names_);
  }

 private:
  // A layer that can be read, and what is known about it.
  struct Layer {
    std::string file;
    std::string digest;  // or empty
    std::string media_type;
    std::optional<std::uint64_t> size;
  };

  void load_docker() {
    const json::value value =
        parse_json(files_.read("manifest.json", kMaxDocument), "manifest.json");
    const json::array* images = value.if_array();
    if (images == nullptr || images->empty()) {
      fail(Code::invalid, "manifest.json names no images");
    }
    for (const json::value& entry : *images) {
      const json::object& object = object_of(entry, "an image in manifest.json");
      std::vector<Layer> layers;
      for (std::string& file : find_texts(object, "Layers"))
        layers.push_back({.file = std::move(file)});
      const std::string config = files_.read(find_text(object, "Config"), kMaxDocument);
      put(find_texts(object, "RepoTags"), config, layers, images->size() == 1);
    }
  }

  void load_oci() {
    const Document document = parse_document(files_.read("index.json", kMaxDocument),
                                             "application/vnd.oci.image.index.v1+json");
    const auto* index = std::get_if<Index>(&document);
    if (index == nullptr || index->entries.empty())
      fail(Code::invalid, "index.json names no images");
    bool any = false;
    for (const Index::Entry& entry : index->entries) {
      // Signatures, and images for other kinds of machine.
      const bool is_said = !entry.platform.os.empty();
      const Index alone{.entries = {entry}};
      if (is_said && index->entries.size() > 1 && !is_for_here(alone)) continue;
      load_oci_image(entry, index->entries.size() == 1);
      any = true;
    }
    if (!any) choose(*index, this_platform());  // says what there is
  }

  static bool is_for_here(const Index& index) {
    try {
      choose(index, this_platform());
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  void load_oci_image(const Index::Entry& entry, bool is_only) {
    Document document = read_document(entry.manifest);
    for (int depth = 0; std::holds_alternative<Index>(document); ++depth) {
      if (depth == kMaxDepth) fail(Code::invalid, "the archive has too many indexes in indexes");
      document = read_document(choose(std::get<Index>(document), this_platform()));
    }
    const auto& manifest = std::get<Manifest>(document);
    std::vector<Layer> layers;
    for (const Descriptor& layer : manifest.layers) {
      layers.push_back({.file = blob_path(layer.digest),
                        .digest = layer.digest,
                        .media_type = layer.media_type,
                        .size = layer.size});
    }
    std::vector<std::string> names;
    if (!entry.name.empty()) names.push_back(entry.name);
    put(names, read_blob(manifest.config), layers, is_only);
  }

  std::string read_blob(const Descriptor& blob) {
    std::string text = files_.read(blob_path(blob.digest), kMaxDocument);
    if (sha256_of(text) != blob.digest) {
      fail(Code::invalid, "blob {} in the archive is not what its digest says", blob.digest);
    }
    return text;
  }
  Document read_document(const Descriptor& blob) {
    return parse_document(read_blob(blob), blob.media_type);
  }

  void put(const std::vector<std::string>& given_names, const std::string& config_text,
           const std::vector<Layer>& layers, bool is_only) {
    const ImageConfig config = parse_image_config(config_text);
    check_image({.layers = std::vector<Descriptor>(layers.size())}, config, this_platform());
    const std::vector<std::string> names = names_for(given_names, is_only);
    for (std::size_t i = 0; i < layers.size(); ++i) add_layer(layers[i], config.diff_ids[i]);
    for (const std::string& name : names) {
      sink_.put_image({.name = name,
                       .id = sha256_of(config_text),
                       .layers = config.diff_ids,
                       .config = config.config,
                       .architecture = config.platform.architecture,
                       .created = config.created});
      names_.push_back(name);
    }
  }

  std::vector<std::string> names_for(const std::vector<std::string>& given, bool is_only) const {
    std::vector<std::string> names;
    for (const std::string& name : given) names.push_back(parse_reference(name).text());
    if (!options_.name.empty()) {
      if (!is_only) fail(Code::invalid, "there are several images in it; one name is not enough");
      names = {parse_reference(options_.name).text()};
    }
    if (names.empty()) fail(Code::invalid, "the image in it has no name; give it one with --name");
    return names;
  }

  void add_layer(const Layer& layer, const std::string& diff_id) {
    LayerProgress state{.digest = layer.digest.empty() ? diff_id : layer.digest,
                        .step = Step::present};
    if (sink_.has_layer(diff_id)) {
      progress_.report(state);
      return;
    }
    state.step = Step::unpacking;
    progress_.report(state);
    const linux::Fd file = files_.open(layer.file);
    check_layer_size(file.get(), layer);
    image::Compression compression = image::Compression::none;
    const Wrapping wrapping = wrapping_of(file.get());
    if (wrapping == Wrapping::gzip) compression = image::Compression::gzip;
    if (wrapping == Wrapping::zstd) compression = image::Compression::zstd;
    sink_.add_layer(file.get(),
                    {.digest = layer.digest, .diff_id = diff_id, .compression = compression});
    state.step = Step::done;
    progress_.report(state);
  }

  static void check_layer_size(int fd, const Layer& layer) {
    struct stat info{};
    if (::fstat(fd, &info) != 0) throw_errno("look at a layer");
    if (layer.size && *layer.size != static_cast<std::uint64_t>(info.st_size)) {
      fail(Code::invalid, "layer {} in the archive has another size than its manifest says",
           layer.digest);
    }
  }

  ArchiveFiles& files_;
  const LoadOptions& options_;
  Sink& sink_;
  Progress& progress_;
  std::vector<std::string> names_;
};

std::unique_ptr<ArchiveFiles> open_archive(const std::string& path, int scratch_fd) {
  const linux::Fd input =
      path == "-" ? linux::duplicate(STDIN_FILENO) : linux::open_file(path, O_RDONLY | O_NOCTTY);
  struct stat info{};
  if (::fstat(input.get(), &info) != 0) throw_errno("look at '{}'", path);
  if (S_ISDIR(info.st_mode)) {
    return std::make_unique<FolderFiles>(linux::open_file(path, O_RDONLY | O_DIRECTORY));
  }
  linux::Fd file = as_regular_file(input.get(), scratch_fd);
  if (wrapping_of(file.get()) != Wrapping::none) file = unwrapped(file.get(), scratch_fd);
  return std::make_unique<TarFiles>(std::move(file), scratch_fd);
}

}  // namespace

std::vector<std::string> load(const std::string& path, const LoadOptions& options, Sink& sink,
                              Progress& progress) {
  const linux::Fd scratch = open_scratch(options.scratch);
  try {
    const auto files = open_archive(path, scratch.get());
    return Load(*files, options, sink, progress).run();
  } catch (const Error& error) {
    if (error.code() != Code::invalid || path == "-") throw;
    fail(Code::invalid, "'{}': {}", path, error.what());
  }
}

}  // namespace hearth::registry
