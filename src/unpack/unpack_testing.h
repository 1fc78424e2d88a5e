// What the tests of this room share. Not for anything else.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "image/tar_testing.h"
#include "linux/fd.h"
#include "linux/sealed_memfd.h"

namespace hearth::unpack {

using image::error_of;
using image::TarPart;

inline linux::Fd file_of(std::string_view bytes) {
  return linux::make_sealed_memfd("archive", bytes);
}

}  // namespace hearth::unpack
