// Any header either means something that we can do or is refused with 406 or 415.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "apiserver/negotiation.h"
#include "model/status.h"

namespace {

template <typename Call>
void refused_or_fine(unsigned code, Call call) {
  try {
    call();
  } catch (const hearth::model::StatusError& error) {
    if (error.status().code != code) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth::apiserver;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  refused_or_fine(406, [&] {
    const Wanted wanted = negotiate(text);
    if (wanted.meta_version != "v1" && wanted.meta_version != "v1beta1") std::abort();
  });
  negotiate_discovery(text);
  refused_or_fine(415, [&] { body_format(text); });
  refused_or_fine(415, [&] { patch_format(text, true); });
  wants_pretty(text, text);
  return 0;
}
