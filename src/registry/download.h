// Layers on their way, several at a time.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "registry/manifest.h"
#include "registry/retry.h"
#include "registry/scratch.h"
#include "registry/sink.h"
#include "registry/source.h"

namespace hearth::registry {

struct DownloadPlan {
  int folder_fd = -1;            // of the partial files
  std::vector<Source*> sources;  // in the order to be asked
  RetryOptions retry;            // its stop token is not looked at
  Progress* progress = nullptr;
  unsigned parallel = 1;
};

// Downloads begin at once. Destroying it calls off what is not finished and waits for that; partial
// files stay for the next time.
class Downloads {
 public:
  // What `plan` points to must outlive it.
  Downloads(DownloadPlan plan, std::vector<Descriptor> blobs);
  Downloads(const Downloads&) = delete;
  Downloads& operator=(const Downloads&) = delete;
  ~Downloads();

  // Waits for the blob of that number; its digest is right. Once for each. Throws what went wrong
  // at the last source.
  std::unique_ptr<PartialFile> take(std::size_t number);

 private:
  void work(const std::stop_token& stop);
  std::unique_ptr<PartialFile> download(const Descriptor& blob, const std::stop_token& stop);

  const DownloadPlan plan_;
  const std::vector<Descriptor> blobs_;
  std::vector<std::promise<std::unique_ptr<PartialFile>>> promises_;
  std::atomic<std::size_t> next_ = 0;
  std::vector<std::jthread> threads_;  // last: joined before anything else goes
};

}  // namespace hearth::registry
