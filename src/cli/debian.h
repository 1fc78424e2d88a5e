// A Debian root file system, made by mmdebstrap.
#pragma once

#include "cli/image.h"
#include "linux/fd.h"

namespace hearth::cli {

// The tar archive, in a file without a name in `scratch`. What mmdebstrap says goes to standard
// error. Throws Error: invalid (names that are none), not_found (no mmdebstrap), unavailable (it
// failed).
linux::Fd make_debian_archive(const DebianOptions& options, const std::string& scratch, bool quiet);

// The command line, for tests. Throws Error(invalid).
std::vector<std::string> mmdebstrap_command(const DebianOptions& options, bool is_root);

}  // namespace hearth::cli
