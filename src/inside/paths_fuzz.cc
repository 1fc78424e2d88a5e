// Paths from strangers: the result is absolute, clean, and stays as it is when cleaned again.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "inside/paths.h"

using namespace hearth;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view path(reinterpret_cast<const char*>(data), size);
  const std::string clean = inside::clean_path(path);
  HEARTH_ASSERT(inside::clean_path(clean) == clean);
  HEARTH_ASSERT(clean.starts_with('/') == path.starts_with('/'));
  try {
    const std::string whole = inside::expand_path(path, {.home = "/home/user", .working = "/w"});
    HEARTH_ASSERT(whole.starts_with('/') && inside::clean_path(whole) == whole);
    HEARTH_ASSERT(("/" + whole + "/").find("/../") == std::string::npos);
    HEARTH_ASSERT(inside::folder_of(whole).starts_with('/'));
  } catch (const Error& error) {
    HEARTH_ASSERT(error.code() == Code::invalid);
  }
  return 0;
}
