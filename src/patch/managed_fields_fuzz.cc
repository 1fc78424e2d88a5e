// Owners of fields: whatever an object, its managedFields and a configuration hold, a write is
// refused as a Status or leaves managedFields that read back as they were written, the same apply
// twice changes nothing, and looking only at what a merge patch names finds what looking at
// everything does.
//
// Input: the object before and after, or live and configuration, as two lines of JSON.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "model/status.h"
#include "patch/field_set.h"
#include "patch/managed_fields.h"
#include "patch/owners_internal.h"
#include "patch/patch.h"
#include "patch/test_schemas_internal.h"

namespace hearth::patch {
namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

const Manager& manager() {
  static const Manager made = {.name = "fuzz", .subresource = "", .api_version = "v1", .time = {}};
  return made;
}

void check_owners(const Json& object) {
  const auto* entries = model::array_at(object, {"metadata", "managedFields"});
  if (!entries) return;
  check(!entries->empty());
  for (const Json& entry : *entries) {
    const Json* fields = model::find(entry, {"fieldsV1"});
    check(fields && fields->is_object() && !fields->get_object().empty());
    const FieldSet set = parse_field_set(*fields);
    std::string text;
    append_text(text, set);
    check(model::parse_json(text).value == *fields);
    check(subtract(set, set).empty() && intersect(set, set) == set && unite(set, set) == set);
    for_each_path(set, [](const std::string& path) { check(!path.empty()); });
  }
}

// The object as it would be stored; nothing if it is refused.
std::optional<Json> update(const Json* before, Json after, const Schema& schema) {
  try {
    record_update(before, after, schema, manager());
  } catch (const model::StatusError& error) {
    check(error.status().code == 400);
    return std::nullopt;
  }
  check_owners(after);
  Json again = after;
  record_update(&after, again, schema, manager());
  check(model::is_same(again, after));
  return after;
}

void patch_both_ways(const Json& before, const Json& patch, const Schema& schema) {
  Json whole = before;
  apply_merge_patch(whole, patch);
  Json touched = whole;
  try {
    record_update(&before, whole, schema, manager());
    record_update(&before, touched, schema, manager(), model::Touched(patch));
  } catch (const model::StatusError& error) {
    check(error.status().code == 400);
    return;
  }
  check(model::is_same(whole, touched));
}

void apply_twice(const Json& live, const Json& configuration, const Schema& schema) {
  try {
    const Json once = apply(&live, configuration, schema, manager(), /*force=*/true);
    check_owners(once);
    const Json twice = apply(&once, configuration, schema, manager(), /*force=*/false);
    check_owners(twice);
  } catch (const model::StatusError& error) {
    const unsigned code = error.status().code;
    check(code == 400 || code == 409 || code == 500);
  }
}

void parse_and_run(std::string_view input) {
  const std::size_t line = input.find('\n');
  if (line == std::string_view::npos) return;
  Json one;
  Json other;
  try {
    one = model::parse_json(input.substr(0, line)).value;
    other = model::parse_json(input.substr(line + 1)).value;
  } catch (const Error&) {
    return;  // no JSON
  }
  if (!one.is_object() || !other.is_object()) return;
  for (const Schema* schema : {&test_pod(), &test_sandbox()}) {
    const auto stored = update(nullptr, one, *schema);
    if (!stored) continue;
    update(&*stored, other, *schema);
    patch_both_ways(*stored, other, *schema);
    apply_twice(*stored, other, *schema);
  }
}

}  // namespace
}  // namespace hearth::patch

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 8192) return 0;
  hearth::patch::parse_and_run({reinterpret_cast<const char*>(data), size});
  return 0;
}
