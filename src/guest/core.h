// The guest as its surfaces see it: what holds for every command, and a way to have commands run.
//
// Surfaces (envd and the like) serve from threads of their own in the guest's process. They speak
// to the server as everybody does, in its protocol, so that it needs no locks and knows no surface.
// Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "guest/client.h"
#include "linux/channel.h"

namespace hearth::guest {

struct Settings {
  std::vector<std::string> environment;  // NAME=value, for every command
  std::string user = "root";             // who commands run as unless they say otherwise
  std::string directory;                 // where they start; empty: the user's home
  std::string token;                     // that surfaces ask strangers for; empty: none
};

class Core {
 public:
  explicit Core(Settings settings);

  // A connection of one's own. Throws Error(unavailable) when the server is gone.
  Connection connect();

  Settings settings() const;
  // All of it at once: nobody sees one half.
  void set_settings(Settings settings);

  // For the server: readable when somebody connected, and who.
  int fd() const { return arrivals_.fd(); }
  std::optional<linux::Channel> take_arrival();

 private:
  Guarded<Settings> settings_;
  linux::Channel door_;      // surfaces send their connections' far ends here
  linux::Channel arrivals_;  // and the server finds them here
};

}  // namespace hearth::guest
