// Where a pull puts layers and images: the runtime's store, behind its socket.
#pragma once

#include <string>

#include "registry/sink.h"
#include "runtime/client.h"

namespace hearth::node {

class RuntimeSink final : public registry::Sink {
 public:
  explicit RuntimeSink(runtime::RuntimeClient& runtime) : runtime_(runtime) {}

  bool has_layer(const std::string& diff_id) override { return runtime_.has_layer(diff_id); }
  std::string add_layer(int blob_fd, const image::LayerBlob& blob) override {
    return runtime_.add_layer(blob_fd, blob);
  }
  std::string add_folder(int dir_fd) override { return runtime_.add_folder(dir_fd); }
  void put_image(const image::Image& image) override { runtime_.put_image(image); }

 private:
  runtime::RuntimeClient& runtime_;
};

}  // namespace hearth::node
