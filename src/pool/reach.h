// Who reaches into the running sandboxes of pods, for front doors: the node agent of this machine.
//
// What has to last is written on objects by whoever calls this; here is only what is done at once.
// Every call blocks: use a worker. Thread-safe. Throws Error: not_found and unavailable (the pod
// does not run here, or not any more), besides what is named.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "linux/fd.h"
#include "model/json.h"
#include "pool/outfit.h"

namespace hearth::pool {

// Of a pod's first container, since it was made.
struct PodUsage {
  std::uint64_t cpu_microseconds = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_limit_bytes = 0;  // 0: none
  std::uint64_t disk_bytes = 0;          // of the writable layer
  std::uint64_t disk_limit_bytes = 0;
  std::uint32_t cpu_millis = 0;  // 1000: one core
};

// CIDRs. Allow wins over deny; what neither names passes.
struct Egress {
  std::vector<std::string> allow;
  std::vector<std::string> deny;
};

class Reach : public Outfitter {
 public:
  // Whether this pod's sandbox is on this machine and runs (paused is running).
  virtual bool is_here(const model::Json& pod) = 0;

  // A connection to a port on the sandbox's own loopback, made inside: it works for services that
  // listen on 127.0.0.1, and without a network. unavailable with "refused" in its text when nobody
  // listens. Milliseconds at most; a paused sandbox does not answer: ask before.
  virtual linux::Fd connect(const model::Json& pod, std::uint16_t port) = 0;

  // Makes an image of the first container's files, under this name; it stands still meanwhile.
  virtual void commit(const model::Json& pod, const std::string& image) = 0;
  virtual bool remove_image(const std::string& image) = 0;
  // Names of images that begin so.
  virtual std::vector<std::string> find_images(std::string_view prefix) = 0;

  // Whom it may talk to, from now on. invalid for a CIDR that is none, or a pod without a network.
  virtual void set_egress(const model::Json& pod, const Egress& egress) = 0;

  virtual PodUsage usage(const model::Json& pod) = 0;
};

}  // namespace hearth::pool
