#include "patch/owners.h"

#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/time_text.h"
#include "model/scratch.h"
#include "patch/record_internal.h"

namespace hearth::patch {
namespace {

using model::JsonArray;
using model::JsonObject;

std::string member_text(const JsonObject& entry, std::string_view name) {
  const Json* value = entry.if_contains(name);
  if (!value || value->is_null()) return {};
  if (!value->is_string()) fail(Code::invalid, "{} of a managed fields entry is no text", name);
  return std::string(value->get_string());
}

Owner parse_owner(const Json& json) {
  const JsonObject* object = json.if_object();
  if (!object) fail(Code::invalid, "a managed fields entry is no object");
  Owner owner;
  const std::string operation = member_text(*object, "operation");
  if (operation != "Apply" && operation != "Update")
    fail(Code::invalid, "operation must be 'Apply' or 'Update'");
  owner.is_apply = operation == "Apply";
  owner.manager = member_text(*object, "manager");
  owner.api_version = member_text(*object, "apiVersion");
  if (owner.api_version.empty()) fail(Code::invalid, "apiVersion must not be empty");
  if (member_text(*object, "fieldsType") != "FieldsV1")
    fail(Code::invalid, "fieldsType must be 'FieldsV1'");
  owner.subresource = member_text(*object, "subresource");
  owner.time = member_text(*object, "time");
  if (!owner.time.empty()) {
    const auto time = parse_rfc3339(owner.time);
    if (!time) fail(Code::invalid, "'{}' is no time", owner.time);
    owner.seconds =
        std::chrono::duration_cast<std::chrono::seconds>(time->time_since_epoch()).count();
  }
  if (const Json* fields = object->if_contains("fieldsV1"); fields && !fields->is_null())
    owner.own(parse_field_set(*fields));
  return owner;
}

void append_member(std::string& out, std::string_view name, std::string_view value) {
  out.append(",\"").append(name).append("\":");
  model::append_text(out, value);
}

}  // namespace

OwnedFields::OwnedFields(FieldSet fields) : set(std::move(fields)) {
  // It grows once in the life of a thread; what is kept has no room to spare.
  static thread_local std::string room;
  model::empty_room(room);
  append_text(room, set);
  text = room;
}

const FieldSet& Owner::set() const {
  static const FieldSet kNone;
  return fields ? fields->set : kNone;
}

void Owner::own(FieldSet set) {
  fields = set.empty() ? nullptr : std::make_shared<const OwnedFields>(std::move(set));
}

bool Owner::is_same_owner(const Owner& other) const {
  return manager == other.manager && is_apply == other.is_apply &&
         subresource == other.subresource && (is_apply || api_version == other.api_version);
}

bool Owner::operator==(const Owner& other) const {
  const auto head = [](const Owner& owner) {
    return std::tie(owner.manager, owner.is_apply, owner.api_version, owner.subresource,
                    owner.time);
  };
  return head(*this) == head(other) && (fields == other.fields || set() == other.set());
}

Owners parse_owners(const Json& managed_fields) {
  const JsonArray* list = managed_fields.if_array();
  if (!list) fail(Code::invalid, "managed fields are no list");
  Owners owners;
  owners.reserve(list->size());
  for (const Json& json : *list) {
    Owner owner = parse_owner(json);
    if (Owner* twin = find_owner(owners, owner))
      *twin = std::move(owner);
    else
      owners.push_back(std::move(owner));
  }
  return owners;
}

Owners read_owners(const Json* managed_fields) {
  if (!managed_fields) return {};
  try {
    return parse_owners(*managed_fields);
  } catch (const Error&) {
    return {};
  }
}

void append_text(std::string& out, const Owners& owners) {
  out += '[';
  for (const Owner& owner : owners) {
    if (&owner != owners.data()) out += ',';
    out += R"({"manager":)";
    model::append_text(out, owner.manager);
    append_member(out, "operation", owner.is_apply ? "Apply" : "Update");
    append_member(out, "apiVersion", owner.api_version);
    if (!owner.time.empty()) append_member(out, "time", owner.time);
    append_member(out, "fieldsType", "FieldsV1");
    out += R"(,"fieldsV1":)";
    out += owner.fields ? std::string_view(owner.fields->text) : "{}";
    if (!owner.subresource.empty()) append_member(out, "subresource", owner.subresource);
    out += '}';
  }
  out += ']';
}

}  // namespace hearth::patch
