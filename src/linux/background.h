// Threads whose work can wait for that of others in the same process.
#pragma once

namespace hearth::linux {

// The calling thread, and those it starts, work when the others leave a processor free; they get a
// small share otherwise, so that nothing they hold is held for ever. What it starts as a process
// inherits that, so not for threads that do. Where the kernel refuses, nothing changes.
void step_back();

}  // namespace hearth::linux
