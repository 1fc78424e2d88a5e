#include "runtime/images.h"

#include "base/error.h"

namespace hearth::runtime {

ChosenImage Images::choose(const std::string& name) {
  ChosenImage chosen;
  if (name == kHostImage) {
    chosen.on_host = true;
    return chosen;
  }
  const auto found = store_.find(name);
  if (!found) {
    fail(Code::not_found,
         "there is no image '{}'; 'hearth image ls' shows what there is, 'hearth image pull' "
         "fetches "
         "more, and 'host' is this machine's own /usr",
         name);
  }
  chosen = choose_again(found->layers, found->config.labels.contains(kBaseLabel));
  chosen.config = found->config;
  return chosen;
}

ChosenImage Images::choose_again(const std::vector<std::string>& layers, bool on_host) {
  ChosenImage chosen;
  chosen.on_host = on_host;
  chosen.layers = layers;
  if (!layers.empty()) chosen.lease = store_.use(layers);
  return chosen;
}

ImageLayers Images::folders_of(const ChosenImage& image) const {
  ImageLayers folders;
  if (image.on_host) folders = host_image_layers(host_path_);
  bool usr = false;
  for (const std::string& layer : image.layers) {
    std::vector<std::string>& list = image.on_host && usr ? folders.usr : folders.root;
    list.insert(list.begin(), store_.layer_path(layer));
    usr = !usr;
  }
  return folders;
}

}  // namespace hearth::runtime
