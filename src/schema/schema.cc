#include "schema/schema.h"

namespace hearth::schema {

const Schema* member_schema(const Schema& schema, std::string_view name) {
  if (const auto found = schema.properties.find(name); found != schema.properties.end())
    return found->second.get();
  return schema.additional.get();
}

}  // namespace hearth::schema
