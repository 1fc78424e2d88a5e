// An image from a registry: manifest, configuration, and the layers that are not here yet.
//
// Speaks the OCI distribution protocol, which is also Docker's (schema 2). Layers are downloaded
// several at a time into files; what was cut off is continued by the next attempt, even of another
// process. Nothing is handed on whose digest was not checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "registry/credentials.h"
#include "registry/reference.h"
#include "registry/sink.h"

namespace hearth::registry {

struct PullOptions {
  // Where unfinished layers are kept; made if it is not there. What nobody continued within a week
  // is removed.
  std::string downloads;
  // Explicit ones are for the image's own registry and win over the files.
  Credentials credentials = {};
  DockerConfig docker_config = {};
  // Asked before the registry, in this order: "mirror.example.com", "http://10.0.0.1:5000".
  std::vector<std::string> mirrors = {};
  // Talk to the registry without TLS. A mirror says so by its http://.
  bool plain_http = false;
  std::string ca_file = {};  // PEM; empty: what the system trusts
  std::string extra_ca =
      {};  // PEM text, in place of that file: trusted besides what the system does
  // Of all layers together, as they travel.
  std::uint64_t max_bytes = std::uint64_t{64} << 30;
  unsigned parallel = 3;
  Duration timeout = std::chrono::hours(1);               // for all of it
  Duration silence = std::chrono::seconds(30);            // of a server that should be sending
  Duration retry_pause = std::chrono::milliseconds(500);  // doubles each time
};

// The image as it was put into `sink`. Throws Error: not_found (no such repository or tag, none for
// this machine), unauthenticated or forbidden (the registry says so; many say so for images that
// do not exist), invalid (what came is broken or not an image), unavailable, timeout, exhausted.
image::Image pull(const Reference& reference, const PullOptions& options, Sink& sink,
                  Progress& progress);

}  // namespace hearth::registry
