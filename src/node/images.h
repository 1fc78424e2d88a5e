// Images for containers: here already, or pulled as the pod says.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "client/client.h"
#include "image/image.h"
#include "model/json.h"
#include "registry/pull.h"

namespace hearth::node {

using model::Json;

// The image that needs no download: the machine itself.
inline constexpr std::string_view kHostImage = "host";

struct ImageOutcome {
  std::optional<image::Image> image;  // nothing: it is not here, because:
  std::string reason;  // ErrImagePull, ImagePullBackOff, ErrImageNeverPull, InvalidImageName
  std::string message;
  Duration retry_after{};  // when it makes sense to ask again
  // For the event: 'Successfully pulled image "x" in 1.2s ...', 'Container image "x" already
  // present on machine', 'Back-off pulling image "x"'; empty for what is not worth one.
  std::string event;
  std::string event_reason = "Failed";  // of one that tells why there is no image
  bool pulled = false;
};

// Where images are kept and come from. Blocking, thread-safe; both throw Error.
class ImageSource {
 public:
  ImageSource() = default;
  ImageSource(const ImageSource&) = delete;
  ImageSource& operator=(const ImageSource&) = delete;
  virtual ~ImageSource() = default;

  virtual std::vector<image::Image> list() = 0;
  virtual image::Image pull(const registry::Reference& reference,
                            const registry::DockerConfig& credentials) = 0;
};

// The runtime's store. `pull` says how; its credentials are those of the engine itself, for pods
// that bring none.
std::unique_ptr<ImageSource> make_runtime_image_source(std::string state_dir,
                                                       registry::PullOptions pull);

// Thread-safe.
class Images {
 public:
  // All must outlive it.
  Images(client::Client& client, ImageSource& source, const Clock& clock);
  Images(const Images&) = delete;
  Images& operator=(const Images&) = delete;
  ~Images();

  // What can be said at once; nothing: a registry must be asked, see ensure().
  std::optional<ImageOutcome> look(const Json& pod, const Json& container);
  // Blocks the calling thread for as long as a download takes. Whoever asks for an image that is on
  // its way already, with the same credentials, waits for that.
  ImageOutcome ensure(const Json& pod, const Json& container);

  // Pauses between failed pulls of a pod are forgotten.
  void forget(std::string_view pod_uid);
  // What is here, at most a moment old: for the Node's status.
  std::vector<image::Image> list();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::node
