#include "registry/pull.h"

#include <unistd.h>

#include <array>
#include <memory>
#include <set>

#include "base/error.h"
#include "registry/digest.h"
#include "registry/download.h"
#include "registry/manifest.h"
#include "registry/source.h"
#include "registry/transport.h"

namespace hearth::registry {
namespace {

class Pull {
 public:
  Pull(const Reference& reference, const PullOptions& options, Sink& sink, Progress& progress)
      : reference_(reference),
        options_(options),
        sink_(sink),
        progress_(progress),
        deadline_(Deadline::after(options.timeout)),
        transport_(options.ca_file, options.extra_ca) {}

  image::Image run() {
    make_sources();
    find_manifest();
    const std::string text = first_source().get_document(manifest_.config, retry_options());
    const ImageConfig config = parse_image_config(text);
    check_image(manifest_, config, this_platform());
    check_size();
    add_layers(config.diff_ids);
    image::Image image{.name = reference_.text(),
                       .id = manifest_.config.digest,
                       .layers = config.diff_ids,
                       .config = config.config,
                       .architecture = config.platform.architecture,
                       .created = config.created};
    sink_.put_image(image);
    return image;
  }

 private:
  struct Wanted {
    Descriptor blob;
    std::string diff_id;
  };

  void make_sources() {
    for (const std::string& mirror : options_.mirrors) {
      const bool has_scheme = mirror.find("://") != std::string::npos;
      const Url url = has_scheme ? parse_url(mirror) : url_of_host(mirror, /*tls=*/true);
      if (url.target != "/") fail(Code::invalid, "mirror '{}': a host, without a path", mirror);
      std::string host = has_scheme ? mirror.substr(mirror.find("://") + 3) : mirror;
      if (host.ends_with('/')) host.pop_back();
      add_source(url, options_.docker_config.find(host, reference_.repository));
    }
    Credentials own = options_.credentials;
    if (own.empty()) own = options_.docker_config.find(reference_.host, reference_.repository);
    add_source(url_of_host(reference_.server(), !options_.plain_http), std::move(own));
  }

  void add_source(const Url& url, Credentials credentials) {
    owned_.push_back(
        std::make_unique<Source>(transport_, SourceOptions{.registry = url,
                                                           .repository = reference_.repository,
                                                           .credentials = std::move(credentials),
                                                           .silence = options_.silence,
                                                           .deadline = deadline_}));
    sources_.push_back(owned_.back().get());
  }

  RetryOptions retry_options() {
    return {.pause = options_.retry_pause,
            .deadline = deadline_,
            .stop = {},
            .note = [this](const std::string& text) { progress_.note(text); }};
  }

  Source& first_source() { return *sources_.front(); }

  // Sources that do not have the image are not asked for its layers either.
  void find_manifest() {
    while (true) {
      try {
        manifest_ = get_manifest(first_source());
        return;
      } catch (const Error& error) {
        if (sources_.size() == 1) throw;
        progress_.note(fmt::format("asking the next registry: {}", error.what()));
        sources_.erase(sources_.begin());
      }
    }
  }

  Manifest get_manifest(Source& source) {
    Document document = get_document(source, reference_.version(), reference_.digest);
    if (const auto* index = std::get_if<Index>(&document)) {
      const std::string digest = choose(*index, this_platform()).digest;
      document = get_document(source, digest, digest);
    }
    if (const auto* manifest = std::get_if<Manifest>(&document)) return *manifest;
    fail(Code::invalid, "the index of '{}' leads to another index", reference_.text());
  }

  Document get_document(Source& source, const std::string& version, const std::string& digest) {
    const Source::Answer answer = source.get_manifest(version, retry_options());
    if (!digest.empty() && sha256_of(answer.text) != digest) {
      fail(Code::invalid, "manifest '{}' at {} is not what its digest says", digest, source.name());
    }
    return parse_document(answer.text, answer.content_type);
  }

  void check_size() const {
    std::uint64_t left = options_.max_bytes;
    for (const Descriptor& layer : manifest_.layers) {
      if (layer.size > left) {
        fail(Code::exhausted, "the layers of '{}' have more than {} bytes", reference_.text(),
             options_.max_bytes);
      }
      left -= layer.size;
    }
  }

  // An image may name a layer more than once, most often an empty one.
  std::vector<Wanted> find_missing(const std::vector<std::string>& diff_ids) {
    std::vector<Wanted> missing;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < diff_ids.size(); ++i) {
      if (!seen.insert(diff_ids[i]).second) continue;
      const Descriptor& blob = manifest_.layers[i];
      if (sink_.has_layer(diff_ids[i])) {
        progress_.report({.digest = blob.digest, .step = Step::present});
      } else {
        missing.push_back({.blob = blob, .diff_id = diff_ids[i]});
      }
    }
    return missing;
  }

  void add_layers(const std::vector<std::string>& diff_ids) {
    const std::vector<Wanted> missing = find_missing(diff_ids);
    if (missing.empty()) return;
    const linux::Fd folder = open_scratch(options_.downloads);
    sweep_scratch(folder.get());
    std::vector<Descriptor> blobs;
    for (const Wanted& wanted : missing) blobs.push_back(wanted.blob);
    Downloads downloads({.folder_fd = folder.get(),
                         .sources = sources_,
                         .retry = retry_options(),
                         .progress = &progress_,
                         .parallel = options_.parallel},
                        std::move(blobs));
    for (std::size_t i = 0; i < missing.size(); ++i) {
      const auto file = downloads.take(i);
      unpack(missing[i], *file);
      file->remove();
    }
  }

  void unpack(const Wanted& wanted, PartialFile& file) {
    LayerProgress layer{.digest = wanted.blob.digest,
                        .step = Step::unpacking,
                        .bytes = wanted.blob.size,
                        .total = wanted.blob.size};
    progress_.report(layer);
    std::array<char, 4> first{};
    const ssize_t count = ::pread(file.rewound_fd(), first.data(), first.size(), 0);
    if (count < 0) throw_errno("read layer {}", wanted.blob.digest);
    const std::string_view magic(first.data(), static_cast<std::size_t>(count));
    sink_.add_layer(file.rewound_fd(),
                    {.digest = wanted.blob.digest,
                     .diff_id = wanted.diff_id,
                     .compression = compression_of(wanted.blob.media_type, magic)});
    layer.step = Step::done;
    progress_.report(layer);
  }

  const Reference& reference_;
  const PullOptions& options_;
  Sink& sink_;
  Progress& progress_;
  const Deadline deadline_;
  Transport transport_;
  std::vector<std::unique_ptr<Source>> owned_;
  std::vector<Source*> sources_;
  Manifest manifest_;
};

}  // namespace

image::Image pull(const Reference& reference, const PullOptions& options, Sink& sink,
                  Progress& progress) {
  return Pull(reference, options, sink, progress).run();
}

}  // namespace hearth::registry
