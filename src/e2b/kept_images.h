// Images that snapshots and forks are made of. Nobody else names them: they go with the last
// Sandbox or SandboxTemplate that does.
//
// Counted from what the caches show. Those that lost their last object while no process of ours ran
// are found by sweep(), and with them those of paused sandboxes.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "client/watch_cache.h"
#include "e2b/routes.h"
#include "model/json.h"

namespace hearth::e2b {

// Thread-safe.
class KeptImages {
 public:
  // Before the core's caches start. The core must outlive it. A thread of its own removes.
  explicit KeptImages(Core& core);
  KeptImages(const KeptImages&) = delete;
  KeptImages& operator=(const KeptImages&) = delete;
  ~KeptImages();

  // Removes what was here when this was made, of any image of ours, and nothing names now. When
  // the caches have synced.
  void sweep();
  // Idempotent. What waits to be removed stays.
  void stop();

  // Holds an image until objects that name it are there, or nothing will.
  class Pin {
   public:
    Pin(KeptImages& images, std::string name) : images_(&images), name_(std::move(name)) {}
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    ~Pin() { images_->release(name_); }

    const std::string& name() const { return name_; }

   private:
    KeptImages* images_;
    std::string name_;
  };

  // The files of a sandbox that runs, in the pod, as an image of a new name. It stands still
  // meanwhile. Throws Refusal(501) where nobody reaches into sandboxes, and Error.
  [[nodiscard]] Pin commit(const Json& pod);
  // The image that a template names, if it is one of ours; else of nothing. A template that the
  // cache shows after this has its image until the pin goes, whoever deletes it meanwhile.
  [[nodiscard]] Pin pin(const Json& sandbox_template);

 private:
  void hold(const std::string& name);
  void release(const std::string& name);
  // Whoever made an object with it may have let go before this has heard of it: a cache has a
  // change before its handlers have, and the server before the cache.
  bool is_named(const std::string& name) const;
  void run();

  Core& core_;
  // Of earlier lives: what this one makes is not in it, and may not be named yet.
  const std::vector<std::string> found_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::string, std::size_t, std::less<>> uses_;
  std::deque<std::string> leftovers_;
  bool is_stopped_ = false;
  std::thread remover_;
};

// A sandbox at one moment.
struct KeptFiles {
  Object sandbox;
  Object pod;
  KeptImages::Pin image;
};
// Of the sandbox that the path's {id} names. Throws Refusal: 404, 409 for one that does not run.
KeptFiles keep_files(Core& core, KeptImages& images, const Call& call);

// The spec of a Sandbox or a SandboxTemplate whose first container starts from the image, on the
// node that has it, and is otherwise as that Sandbox is.
Json spec_from_image(const Json& sandbox, const Json& pod, std::string_view image);

}  // namespace hearth::e2b
