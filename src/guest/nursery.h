// Where sandboxes are born: a guest that has been started, has everything in memory, and copies
// itself for each of them.
//
// A copy costs a tenth of a new program: nothing to execute, no libraries to start, the system call
// filter inherited. The nursery lives in a root folder of its own that shows nothing of the host,
// holds no secret, and forgets every order as soon as it has been carried out: its memory is what
// every sandbox begins with.
#pragma once

#include "guest/surfaces.h"
#include "linux/channel.h"

namespace hearth::guest {

// Serves orders (see boot.h) until the channel closes. Copies are reaped by the kernel: whoever
// cares about their end holds a pidfd. `open_doors` is what a guest serves its surfaces with.
// Throws Error.
void run_nursery(linux::Channel channel, OpenDoors open_doors);

}  // namespace hearth::guest
