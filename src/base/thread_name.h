// The name under which a thread shows in `top -H`, `perf` and core files.
#pragma once

#include <string_view>

namespace hearth {

// Of the calling thread. The kernel keeps the first 15 bytes.
void name_thread(std::string_view name);

}  // namespace hearth
