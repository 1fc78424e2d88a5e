// The guest as its surfaces see it: what holds for every command, and a way to have commands run.
//
// Surfaces (envd and the like) serve from threads of their own in the guest's process. They speak
// to the server as everybody does, in its protocol, so that it needs no locks and knows no surface.
// Thread-safe.
#pragma once

#include <functional>
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

// What of its environment commands are given: all of it, unless it has SUBPROCESS_ENV_PASSTHROUGH.
// Then PATH, LANG, LC_ALL and the names in that list, separated by commas: keys that the sandbox
// holds do not reach what a model wrote.
std::vector<std::string> environment_for_commands(const Settings& settings);

class Core {
 public:
  explicit Core(Settings settings);

  // A connection of one's own. Throws Error(unavailable) when the server is gone.
  Connection connect();

  Settings settings() const;
  // All of it at once: nobody sees one half, and nobody else's change is lost. What `change` throws
  // leaves everything as it was.
  void change_settings(const std::function<void(Settings&)>& change);

  // For the server: readable when somebody connected, and who.
  int fd() const { return arrivals_.fd(); }
  std::optional<linux::Channel> take_arrival();

 private:
  Guarded<Settings> settings_;
  linux::Channel door_;      // surfaces send their connections' far ends here
  linux::Channel arrivals_;  // and the server finds them here
};

}  // namespace hearth::guest
