#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "model/meta.h"
#include "tenants/made_internal.h"
#include "tenants/system_internal.h"

namespace hearth::tenants {
namespace {

using model::Json;

// On what we made: "HASH GENERATION", of what we wanted it to be, and the generation that this
// made.
constexpr std::string_view kOursAnnotation = "hearth.dev/made-by-hearth";

std::string mark(const Json& wanted, std::int64_t generation) {
  return fmt::format("{} {}", model::name_hash(model::to_text(wanted)), generation);
}

Json marked(Json wanted, const std::string& mark) {
  model::make_object_at(wanted, {"metadata", "annotations"})[kOursAnnotation] = mark;
  return wanted;
}

}  // namespace

bool is_as_made(const Json& kept) {
  const std::string_view mark = model::annotation_of(kept, kOursAnnotation);
  return mark.ends_with(fmt::format(" {}", model::generation_of(kept)));
}

void settle_made(client::Client& client, const client::ResourceId& resource, const Json& wanted,
                 bool make) {
  const model::Key key = model::key_of(wanted);
  const auto kept = client.find(resource, key.ns, key.name);
  if (!kept) {
    if (make) create_if_absent(client, resource, marked(wanted, mark(wanted, 1)));
    return;
  }
  const std::int64_t generation = model::generation_of(*kept);
  const bool is_current = model::annotation_of(*kept, kOursAnnotation) == mark(wanted, generation);
  if (is_current || !is_as_made(*kept)) return;
  Json update = marked(wanted, mark(wanted, generation + 1));
  model::make_object_at(update, {"metadata"})["resourceVersion"] =
      model::resource_version_of(*kept);
  client.update(resource, update);
}

}  // namespace hearth::tenants
