// hearth-runtime as seen by the engine that needs one: found, replaced, started, ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/protocol.h"

namespace hearth::cli {

struct RuntimeWanted {
  std::string state_dir;
  uid_t owner = 0;  // whom it shall serve
  std::string log_format;
  std::string log_level;
  unsigned warm = 0;
  bool network = true;
  std::uint64_t image_quota_bytes = 0;
  std::vector<std::string> host_paths;
};

struct RuntimeFound {
  runtime::Hello hello;
  bool started = false;  // by us, just now
};

// A runtime of our version that serves `owner`. One that serves the folder already is kept if it
// fits, with the options it was started with; another is asked to go, leaving its sandboxes, and
// replaced. Started as our child, or through sudo where we are not root. Throws Error that says how
// to start it by hand.
RuntimeFound ensure_runtime(const RuntimeWanted& wanted);

// Ends the runtime, with its sandboxes or without, and returns when its process is gone.
void end_runtime(const std::string& state_dir, bool destroy_all);

}  // namespace hearth::cli
