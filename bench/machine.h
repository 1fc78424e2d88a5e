// The machine that figures come from, in words: no figure means anything without.
#pragma once

#include <string>

namespace hearth::bench {

// Several lines: kernel, processors, memory, cgroups, load. Names nothing that identifies the
// machine.
std::string describe_machine();

// "load 0.10 0.20 0.30": how busy the machine was in the last 1, 5 and 15 minutes.
std::string describe_load();

// Until the machine has next to nothing to do: what one put off must not fall into another's time.
// Not for long: a machine that others use never rests.
void wait_for_rest();

}  // namespace hearth::bench
