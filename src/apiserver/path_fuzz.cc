// Any request line: a path of a resource is understood or not, and a query's numbers are numbers.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "apiserver/path.h"
#include "apiserver/query.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t mark = text.find('?');
  if (const auto path = hearth::apiserver::parse_resource_path(text.substr(0, mark))) {
    if (path->version.empty() || path->plural.empty()) std::abort();
    if (hearth::apiserver::verb_of("GET", *path, false).empty()) std::abort();
  }
  try {
    const hearth::apiserver::Query query(mark == text.npos ? std::string_view()
                                                           : text.substr(mark + 1));
    query.flag("watch");
    query.number("limit");
    query.all("dryRun");
  } catch (const hearth::Error&) {  // refused
  }
  return 0;
}
