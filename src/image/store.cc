#include "image/store.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace hearth::image {
namespace {

constexpr std::string_view kDigestPrefix = "sha256:";
// Fewer fit too many images.
constexpr std::size_t kLeastIdDigits = 6;
// What overlayfs takes as lower layers (OVL_MAX_STACK).
constexpr std::size_t kMaxLayers = 500;

void check_image(const Image& image) {
  if (!is_image_name(image.name)) fail(Code::invalid, "'{}' is no name for an image", image.name);
  if (!is_digest(image.id)) fail(Code::invalid, "'{}' is no id of an image", image.id);
  if (image.layers.empty()) fail(Code::invalid, "image '{}' has no layers", image.name);
  if (image.layers.size() > kMaxLayers)
    fail(Code::invalid, "image '{}' has more than {} layers", image.name, kMaxLayers);
  for (const std::string& layer : image.layers) {
    if (!is_digest(layer)) fail(Code::invalid, "'{}' is no id of a layer", layer);
  }
}

// The digits that an id would have to begin with; nothing for text that cannot be meant as an id.
std::string_view id_digits(std::string_view text) {
  if (text.starts_with(kDigestPrefix)) text.remove_prefix(kDigestPrefix.size());
  const bool hex = std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return hex && text.size() >= kLeastIdDigits ? text : std::string_view();
}

}  // namespace

Store::Store(const StoreOptions& options)
    : unpack_program_(options.unpack_program),
      helper_ids_(options.helper_ids),
      quota_bytes_(options.quota_bytes),
      folder_(options.folder_fd) {
  swept_ = folder_.sweep();
  for (const auto& [diff_id, bytes] : folder_.load_layers()) layers_[diff_id].bytes = bytes;
  for (Image& image : folder_.load_images()) {
    const bool whole = std::ranges::all_of(
        image.layers, [&](const std::string& layer) { return layers_.contains(layer); });
    if (whole) {
      images_[image.name] = std::move(image);
    } else {
      log::warning("an image lacks a layer and is left out", {{"image", image.name}});
    }
  }
}

Store::~Store() = default;

bool Store::has_layer(const std::string& diff_id) const {
  const std::lock_guard lock(mutex_);
  return layers_.contains(diff_id);
}

void Store::put_image(Image image) {
  check_image(image);
  const std::lock_guard writing(records_mutex_);
  // Held until the table names them.
  const Lease lease = use(image.layers);
  image.bytes = 0;
  for (const std::string& layer : image.layers) image.bytes += layer_bytes(layer);
  folder_.write_image(image);
  const std::lock_guard lock(mutex_);
  std::string name = image.name;
  images_[std::move(name)] = std::move(image);
}

std::optional<Image> Store::find(std::string_view name_or_id) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = images_.find(std::string(name_or_id)); found != images_.end())
    return found->second;
  const std::string_view digits = id_digits(name_or_id);
  if (digits.empty()) return std::nullopt;
  const Image* match = nullptr;
  for (const auto& [name, image] : images_) {
    if (!std::string_view(image.id).substr(kDigestPrefix.size()).starts_with(digits)) continue;
    if (match != nullptr && match->id != image.id)
      fail(Code::conflict, "several images have an id that begins with '{}'", digits);
    if (match == nullptr) match = &image;
  }
  return match == nullptr ? std::nullopt : std::optional(*match);
}

std::vector<Image> Store::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<Image> images;
  images.reserve(images_.size());
  for (const auto& [name, image] : images_) images.push_back(image);
  return images;
}

bool Store::remove(const std::string& name) {
  const std::lock_guard writing(records_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (!images_.contains(name)) return false;
  }
  // First on disk: an image that comes back after a crash was never said to be gone.
  folder_.remove_image(name);
  const std::lock_guard lock(mutex_);
  images_.erase(name);
  return true;
}

void Store::pin_locked(Layer& layer, const std::string& diff_id, Lease& lease) {
  std::shared_ptr<const Lease::Pin> pin = layer.pin.lock();
  if (!pin) {
    pin = std::make_shared<const Lease::Pin>();
    layer.pin = pin;
  }
  lease.layers_.push_back(diff_id);
  lease.pins_.push_back(std::move(pin));
}

std::optional<Lease> Store::find_locked(const std::string& diff_id) {
  const auto found = layers_.find(diff_id);
  if (found == layers_.end()) return std::nullopt;
  Lease lease;
  pin_locked(found->second, diff_id, lease);
  return lease;
}

Lease Store::use(const std::vector<std::string>& layers) {
  const std::lock_guard lock(mutex_);
  Lease lease;
  for (const std::string& diff_id : layers) {
    const auto found = layers_.find(diff_id);
    if (found == layers_.end()) fail(Code::not_found, "layer '{}' is not here", diff_id);
    pin_locked(found->second, diff_id, lease);
  }
  return lease;
}

std::set<std::string> Store::needed_layers_locked() const {
  std::set<std::string> needed;
  for (const auto& [name, image] : images_) needed.insert(image.layers.begin(), image.layers.end());
  for (const auto& [diff_id, layer] : layers_) {
    if (!layer.pin.expired()) needed.insert(diff_id);
  }
  return needed;
}

Collected Store::collect_garbage() {
  Collected collected;
  std::vector<std::string> aside;
  {
    const std::lock_guard lock(mutex_);
    const std::set<std::string> needed = needed_layers_locked();
    for (auto layer = layers_.begin(); layer != layers_.end();) {
      if (needed.contains(layer->first)) {
        ++layer;
        continue;
      }
      aside.push_back(folder_.put_aside(layer->first));
      collected.layers.push_back(layer->first);
      collected.bytes += layer->second.bytes;
      layer = layers_.erase(layer);
    }
  }
  for (const std::string& name : aside) folder_.remove_aside(name);
  return collected;
}

std::string Store::layer_path(const std::string& diff_id) const {
  const std::lock_guard lock(mutex_);
  if (!layers_.contains(diff_id)) fail(Code::not_found, "layer '{}' is not here", diff_id);
  return folder_.layer_path(diff_id);
}

std::uint64_t Store::layer_bytes(const std::string& diff_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = layers_.find(diff_id);
  if (found == layers_.end()) fail(Code::not_found, "layer '{}' is not here", diff_id);
  return found->second.bytes;
}

std::uint64_t Store::used_bytes_locked() const {
  std::uint64_t bytes = 0;
  for (const auto& [diff_id, layer] : layers_) bytes += layer.bytes;
  return bytes;
}

StoreUsage Store::usage() const {
  const std::lock_guard lock(mutex_);
  return {.images = images_.size(),
          .layers = layers_.size(),
          .bytes = used_bytes_locked(),
          .quota_bytes = quota_bytes_};
}

}  // namespace hearth::image
