// The components of an OpenAPI document: schemas, and what they refer to.
#pragma once

#include <map>
#include <string>

#include "apiserver/resource.h"

namespace hearth::apiserver {

class OpenApiSchemas {
 public:
  explicit OpenApiSchemas(const schema::Schema& object_meta) : object_meta_(object_meta) {}

  // Takes a resource's kind in and returns the name of its schema.
  std::string add(const Resource& resource);
  // All that were taken in, and all that they refer to.
  Json take();

 private:
  model::JsonObject write(const schema::Schema& schema);
  // In the place of a member, an element, an alternative. A copy of a shared type that stands in
  // one place has that place's description.
  Json refer(const schema::Schema& schema, bool is_member);
  void write_type(const schema::Schema& schema, model::JsonObject& out) const;
  void write_members(const schema::Schema& schema, model::JsonObject& out);
  void write_limits(const schema::Schema& schema, model::JsonObject& out);
  void write_extensions(const schema::Schema& schema, model::JsonObject& out) const;
  Json write_custom(const Resource& resource);
  Json write_built_in(const Resource& resource);

  const schema::Schema& object_meta_;
  std::map<std::string, Json> schemas_;
};

}  // namespace hearth::apiserver
