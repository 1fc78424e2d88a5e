// Turns a shell into the sandbox that was asked for: what its guest is assigned, and the mounts
// that go with it. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "guest/boot.h"
#include "linux/channel.h"
#include "linux/fd.h"
#include "network/network.h"
#include "runtime/facts.h"
#include "runtime/id_ranges.h"
#include "runtime/images.h"
#include "runtime/shell.h"
#include "runtime/volumes.h"

namespace hearth::runtime {

class Dresser {
 public:
  // All borrowed, and to outlive it.
  struct Sources {
    int facts_fd = -1;
    int disks_fd = -1;
    IdRanges& id_ranges;
    const Images& images;
    Volumes& volumes;
    const network::Network* network = nullptr;  // or none
  };
  Dresser(Sources sources, const std::string& guest_program);

  // Returns a connection to the guest, which has taken the assignment. Throws Error.
  linux::Channel dress(Shell& shell, const SandboxSpec& spec, const ChosenImage& image);

 private:
  struct Outfit {
    guest::Assignment assignment;
    std::vector<linux::Fd> mounts;  // in the order in which the guest expects them
  };
  void add_layers(Outfit& outfit, Shell& shell, const SandboxSpec& spec, const ChosenImage& image);
  void add_attachments(Outfit& outfit, const Shell& shell, const SandboxSpec& spec);
  void add_settings(Outfit& outfit, const Shell& shell, const SandboxSpec& spec,
                    const image::Config& config) const;
  void add_names(Outfit& outfit, const Shell& shell, const SandboxSpec& spec) const;

  const Sources sources_;
  Facts facts_;
  const linux::Fd guest_program_;  // O_PATH: what sandboxes have as sudo
};

}  // namespace hearth::runtime
