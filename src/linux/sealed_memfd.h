// Bytes in memory that travel as a file descriptor and can no longer change.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "linux/fd.h"

namespace hearth::linux {

// Positioned at its start.
Fd make_sealed_memfd(const char* name, std::string_view bytes);

// A sealed copy of a program: execveat(2) can run it, and nothing can write to it, not even through
// /proc/PID/exe (the way runc was once overwritten from inside, CVE-2019-5736).
Fd make_sealed_program(const std::string& path);

// What such a descriptor holds. Throws Error(invalid) unless it is a memfd sealed against writing
// and resizing, and no larger than `limit`: a descriptor that somebody else sent could be anything.
std::string read_sealed_memfd(int memfd, std::size_t limit);

}  // namespace hearth::linux
