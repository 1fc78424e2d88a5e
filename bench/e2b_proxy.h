// The case `proxy`: our gateway and nginx in front of the same server.
#pragma once

#include "bench/page.h"

namespace hearth::bench {

// `only`: skips and rows are of this case alone. Throws Error for what keeps all of it from being
// measured.
void measure_proxies(const PageOptions& options, Results& results);

}  // namespace hearth::bench
