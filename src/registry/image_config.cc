// The part of manifest.h that is about how an image wants to be run.
#include <algorithm>

#include <boost/json/value.hpp>

#include "base/error.h"
#include "base/time_text.h"
#include "registry/json_internal.h"
#include "registry/manifest.h"

namespace hearth::registry {
namespace {

namespace json = boost::json;

// What the store takes at most, so that an image that was downloaded can also be kept.
constexpr std::size_t kMaxLabels = 4096;
// All texts of the configuration together; a message to the runtime holds 4 MiB.
constexpr std::size_t kMaxTexts = std::size_t{1} << 20;

// ExposedPorts is an object whose values are always empty objects.
std::vector<std::string> keys_of(const json::object* object) {
  std::vector<std::string> keys;
  if (object == nullptr) return keys;
  if (object->size() > kMaxLabels)
    fail(Code::invalid, "the image exposes {} ports", object->size());
  for (const auto& member : *object) keys.emplace_back(member.key());
  std::ranges::sort(keys);
  return keys;
}

std::map<std::string, std::string> labels_of(const json::object& config) {
  std::map<std::string, std::string> labels;
  const json::object* object = find_object(config, "Labels");
  if (object == nullptr) return labels;
  if (object->size() > kMaxLabels) fail(Code::invalid, "the image has {} labels", object->size());
  for (const auto& member : *object) labels[member.key()] = find_text(*object, member.key());
  return labels;
}

std::size_t texts_size(const image::Config& config) {
  std::size_t size = config.directory.size() + config.user.size() + config.stop_signal.size();
  for (const auto* texts :
       {&config.entrypoint, &config.command, &config.environment, &config.ports}) {
    for (const std::string& text : *texts) size += text.size();
  }
  for (const auto& [name, value] : config.labels) size += name.size() + value.size();
  return size;
}

image::Config parse_run_config(const json::object& object) {
  image::Config config{.entrypoint = find_texts(object, "Entrypoint"),
                       .command = find_texts(object, "Cmd"),
                       .environment = find_texts(object, "Env"),
                       .directory = find_text(object, "WorkingDir"),
                       .user = find_text(object, "User"),
                       .ports = keys_of(find_object(object, "ExposedPorts")),
                       .labels = labels_of(object),
                       .stop_signal = find_text(object, "StopSignal")};
  // Not NAME=value: the kernel would pass it on, and nobody could use it.
  std::erase_if(config.environment, [](const std::string& entry) {
    return entry.find('=') == std::string::npos || entry.starts_with('=');
  });
  if (texts_size(config) > kMaxTexts) {
    fail(Code::invalid, "the image's configuration is larger than {} bytes", kMaxTexts);
  }
  return config;
}

std::vector<std::string> parse_diff_ids(const json::object& object) {
  const json::object* root = find_object(object, "rootfs");
  if (root == nullptr) fail(Code::invalid, "the image's configuration names no layers");
  auto ids = find_texts(*root, "diff_ids");
  if (!std::ranges::all_of(ids, image::is_digest)) {
    fail(Code::invalid, "the image's configuration names a layer by something that is no digest");
  }
  return ids;
}

}  // namespace

ImageConfig parse_image_config(std::string_view text) {
  const json::value value = parse_json(text, "the image's configuration");
  const json::object& object = object_of(value, "the image's configuration");
  ImageConfig image;
  image.platform = {.os = find_text(object, "os"),
                    .architecture = find_text(object, "architecture"),
                    .variant = find_text(object, "variant")};
  // Pride in reproducible builds leaves it out, or says 1970; neither is worth an error.
  image.created = parse_rfc3339(find_text(object, "created")).value_or(Time());
  if (const json::object* config = find_object(object, "config")) {
    image.config = parse_run_config(*config);
  }
  image.diff_ids = parse_diff_ids(object);
  return image;
}

void check_image(const Manifest& manifest, const ImageConfig& config, const Platform& here) {
  const Platform& platform = config.platform;
  if (platform.os != here.os || platform.architecture != here.architecture) {
    fail(Code::invalid, "the image is for '{}/{}', this machine is {}/{}", platform.os,
         platform.architecture, here.os, here.architecture);
  }
  if (config.diff_ids.empty()) fail(Code::invalid, "the image has no layers");
  if (config.diff_ids.size() != manifest.layers.size()) {
    fail(Code::invalid, "the image has {} layers in its manifest and {} in its configuration",
         manifest.layers.size(), config.diff_ids.size());
  }
}

}  // namespace hearth::registry
