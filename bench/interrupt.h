// Ctrl-C while measuring: an exception at the next sample, so that everything is cleaned up on the
// usual way out.
#pragma once

#include <stdexcept>

namespace hearth::bench {

struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

// SIGINT, SIGTERM and SIGHUP from now on only set a flag. The commands we start begin with the
// defaults again.
void catch_interrupts();

bool was_interrupted();

// Throws Interrupted. Called between samples.
void check_interrupts();

}  // namespace hearth::bench
