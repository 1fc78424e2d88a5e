// What the guest's server is told at its start, and what it has to say at its end.
#pragma once

#include <optional>
#include <vector>

#include "guest/process_rights.h"
#include "guest/protocol.h"
#include "guest/surfaces.h"
#include "linux/channel.h"
#include "linux/fd.h"
#include "linux/resource_limits.h"

namespace hearth::guest {

// What a container is for that somebody else made (contained.h).
struct ContainerCommand {
  ExecRequest request;           // without a terminal of ours
  std::vector<linux::Fd> stdio;  // three; above 2
  bool terminal = false;         // the first of them is one, and nobody's: it becomes the command's
};

struct ServerOptions {
  linux::Fd listen;                          // or none
  linux::Channel boot;                       // see boot.h; empty: nobody to report to
  std::vector<linux::ResourceLimit> limits;  // of each command
  ProcessRights rights;                      // of each command
  linux::Channel first_client;               // connected already; or none
  linux::Fd stage;                           // handed to whoever says hello (stage.h); or none
  std::vector<Door> doors;                   // of surfaces; closed until somebody knocks
  OpenDoors open_doors;                      // with them
  linux::Fd sudo_door;                       // or none (sudo_door.h)
  std::vector<std::string> sudoers;          // who may come through it, besides root
  std::optional<ContainerCommand> command;   // started first; its end is the server's
  // That are passed on to that command. Without one they end everything here.
  std::vector<int> signals;
};

// Of the command in the options.
struct Outcome {
  std::optional<Exited> end;
  std::optional<Failed> failure;  // it did not start
};

}  // namespace hearth::guest
