// Patches of all three kinds: refused as a Status, or applied to something that can be written and
// read again; never deeper than what a client may send.
//
// Input: a byte that chooses the kind, then the object and the patch as lines of JSON.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "model/status.h"
#include "patch/patch.h"
#include "patch/test_schemas_internal.h"

namespace hearth::patch {
namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void run(char kind, Json target, const Json& patch) {
  try {
    if (kind == 'j')
      apply_json_patch(target, patch);
    else if (kind == 'm')
      apply_merge_patch(target, patch);
    else
      apply_strategic_patch(target, patch, test_pod());
  } catch (const model::StatusError& error) {
    const unsigned code = error.status().code;
    check(code == 400 || code == 413 || code == 422 || code == 500);
    return;
  }
  check(model::is_same(model::parse_json(model::to_text(target)).value, target));
  if (kind != 'm') return;
  Json again = target;
  apply_merge_patch(again, patch);
  check(model::is_same(again, target));
}

void parse_and_run(std::string_view input) {
  const std::size_t line = input.find('\n');
  if (input.size() < 2 || line == std::string_view::npos) return;
  try {
    Json target = model::parse_json(input.substr(1, line - 1)).value;
    const Json patch = model::parse_json(input.substr(line + 1)).value;
    if (target.is_object()) run(input[0], std::move(target), patch);
  } catch (const model::StatusError&) {
    throw;
  } catch (const Error&) {
    return;  // no JSON
  }
}

}  // namespace
}  // namespace hearth::patch

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 8192) return 0;
  hearth::patch::parse_and_run({reinterpret_cast<const char*>(data), size});
  return 0;
}
