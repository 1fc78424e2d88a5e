// Threads whose work can wait for that of others in the same process.
#pragma once

namespace hearth::linux {

// The calling thread, and those it starts, take nobody's turn away when they wake up. Their share
// of the processor stays what it is: what they hold, a lock or the lead of a batch of writes,
// others may wait for. What it starts as a process inherits that, so not for threads that do. Where
// the kernel refuses, nothing changes.
void step_back();

}  // namespace hearth::linux
