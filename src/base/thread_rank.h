// Whose turn it is, among the threads of one process.
#pragma once

namespace hearth {

// What the calling thread starts as a process inherits either, so neither is for threads that do.
// Where the kernel refuses, nothing changes.

// Somebody waits for what this thread does: where all want the processor, it gets most of it.
void step_forward();

// This thread takes nobody's turn away when it wakes up. Its share of the processor stays what it
// is: what it holds, a lock or the lead of a batch of writes, others may wait for.
void step_back();

}  // namespace hearth
