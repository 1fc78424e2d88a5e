// The programs that kernels run, as they are in drivers/, embedded by embed.py.
#pragma once

#include <string_view>

namespace hearth::interpreter {

// By the file's name without its ending. Throws Error(internal) for one that is not there.
std::string_view driver_text(std::string_view name);

}  // namespace hearth::interpreter
