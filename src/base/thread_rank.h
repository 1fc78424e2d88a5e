// Whose turn it is, among the threads of one process.
#pragma once

namespace hearth {

// This thread takes nobody's turn away when it wakes up. Its share of the processor stays what it
// is: what it holds, a lock or the lead of a batch of writes, others may wait for.
// What it starts as a process inherits that, so it is not for threads that do.
void step_back();

}  // namespace hearth
