// Short texts of strangers: names of images, addresses, challenges.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "registry/challenge.h"
#include "registry/reference.h"
#include "registry/url.h"

using namespace hearth;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 3) {
      case 0: {
        const registry::Reference reference = registry::parse_reference(text);
        HEARTH_ASSERT(registry::parse_reference(reference.text()) == reference);
        HEARTH_ASSERT(!reference.version().empty());
        registry::url_of_host(reference.server(), true);
        break;
      }
      case 1: {
        const registry::Url url = registry::parse_url(text);
        HEARTH_ASSERT(registry::parse_url(url.origin() + url.target) == url);
        registry::resolve(url, text);
        break;
      }
      default:
        for (const auto& challenge : registry::parse_challenges(text)) {
          HEARTH_ASSERT(!challenge.scheme.empty());
        }
    }
  } catch (const Error& error) {
    HEARTH_ASSERT(error.code() == Code::invalid);
  }
  return 0;
}
