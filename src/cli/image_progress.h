// How far layers are, on standard error: moving bars on a terminal, a line each elsewhere.
#pragma once

#include <cstdio>
#include <memory>

#include "registry/sink.h"

namespace hearth::cli {

enum class ProgressKind { none, lines, bars };

// Bars where `out` is a terminal that can move its cursor, lines where not.
ProgressKind progress_kind(std::FILE* out, bool quiet);

// `out` is borrowed. With `none` notes are dropped too.
std::unique_ptr<registry::Progress> make_progress(ProgressKind kind, std::FILE* out);

}  // namespace hearth::cli
