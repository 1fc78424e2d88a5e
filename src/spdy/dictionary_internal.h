// The words that both ends of a SPDY/3 connection know before the first header block.
#pragma once

#include <string>

namespace hearth::spdy {

const std::string& dictionary();

}  // namespace hearth::spdy
