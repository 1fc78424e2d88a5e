// Queries of lists, with their cursors and metadata filters: refused with a 400, or read into
// something that survives the trip to its text and back.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "e2b/core.h"
#include "e2b/list_query.h"
#include "e2b/refusal_testing_internal.h"

namespace hearth::e2b {
namespace {

void check_cursor(std::string_view text) {
  const Cursor cursor = parse_cursor(text);
  check(is_sandbox_id(cursor.id));
  check(parse_cursor(render_cursor(cursor)) == cursor);
}

}  // namespace
}  // namespace hearth::e2b

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth::e2b;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  attempt({400}, [&] { check_cursor(text); });
  attempt({400}, [&] { parse_metadata_filter(text); });
  attempt({400}, [&] { parse_sandbox_id(text); });
  attempt({400}, [&] {
    const ListQuery query = parse_list_query(text);
    check(query.limit >= 1 && query.limit <= 100);
  });
  return 0;
}
