// What a claim brings along for the sandbox that it gets, so that a warm one need not be thrown
// away for it: applied through the guest, once, before the claim is Ready.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/json.h"

namespace hearth::pool {

struct OutfitFile {
  std::string path;  // absolute
  std::string content;
  std::uint32_t mode = 0400;
};

struct OutfitVolume {
  std::string claim_name;  // of the PersistentVolumeClaim, in the sandbox's namespace
  std::string path;
  bool read_only = false;
};

struct Outfit {
  std::string container;                 // empty: the first
  std::vector<std::string> environment;  // NAME=value
  std::string directory;                 // empty: as it is
  std::string user;                      // whom commands run as; empty: as it is
  std::string token;                     // that surfaces ask for; empty: as it is
  bool drops_token = false;              // they ask for none any more
  std::vector<OutfitFile> files;
  std::vector<OutfitVolume> volumes;

  bool is_empty() const {
    return environment.empty() && directory.empty() && user.empty() && token.empty() &&
           !drops_token && files.empty() && volumes.empty();
  }
};

// Who reaches into running sandboxes: the node agent, or nobody.
class Outfitter {
 public:
  Outfitter() = default;
  Outfitter(const Outfitter&) = delete;
  Outfitter& operator=(const Outfitter&) = delete;
  virtual ~Outfitter() = default;

  // Whether this pod's containers can be reached so. If not, a claim with an outfit starts cold.
  virtual bool can_outfit(const model::Json& pod) = 0;
  // All of it or nothing; the same again is success. Throws Error.
  virtual void outfit(const model::Json& pod, const Outfit& outfit) = 0;
};

}  // namespace hearth::pool
