// Small kinds for tests and fuzzers: a custom one and a built-in one, made by hand.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schema/schema.h"

namespace hearth::patch {

using schema::Grain;
using schema::Schema;
using schema::SchemaPtr;
using schema::Type;

inline SchemaPtr of_type(Type type) {
  auto made = std::make_shared<Schema>();
  made->type = type;
  return made;
}

using Members = std::initializer_list<std::pair<const std::string, SchemaPtr>>;

inline std::shared_ptr<Schema> struct_of(Members members) {
  auto made = std::make_shared<Schema>();
  made->type = Type::object;
  for (const auto& [name, member] : members) made->properties.emplace(name, member);
  return made;
}

inline std::shared_ptr<Schema> map_of(SchemaPtr value) {
  auto made = std::make_shared<Schema>();
  made->type = Type::object;
  made->additional = std::move(value);
  return made;
}

inline std::shared_ptr<Schema> list_of(SchemaPtr items, Grain grain,
                                       std::vector<std::string> keys = {}) {
  auto made = std::make_shared<Schema>();
  made->type = Type::array;
  made->items = std::move(items);
  made->grain = grain;
  made->list_keys = std::move(keys);
  if (made->list_keys.empty() && grain != Grain::set) return made;
  made->patch_strategy = "merge";
  if (grain == Grain::keyed) made->patch_merge_key = made->list_keys.front();
  return made;
}

inline SchemaPtr text_with_default(std::string_view value) {
  auto made = std::make_shared<Schema>();
  made->type = Type::string;
  made->default_value = schema::Json(value);
  return made;
}

inline SchemaPtr test_pod_spec() {
  const SchemaPtr text = of_type(Type::string);
  const SchemaPtr number = of_type(Type::integer);
  const SchemaPtr port = struct_of(
      {{"name", text}, {"containerPort", number}, {"protocol", text_with_default("TCP")}});
  const SchemaPtr variable = struct_of({{"name", text}, {"value", text}});
  const SchemaPtr container =
      struct_of({{"name", text},
                 {"image", text},
                 {"command", list_of(text, Grain::atomic)},
                 {"env", list_of(variable, Grain::keyed, {"name"})},
                 {"ports", list_of(port, Grain::keyed, {"containerPort", "protocol"})},
                 {"resources", struct_of({{"limits", map_of(text)}})}});
  const SchemaPtr volume = struct_of({{"name", text},
                                      {"emptyDir", struct_of({{"medium", text}})},
                                      {"hostPath", struct_of({{"path", text}})}});
  auto selector = map_of(text);
  selector->grain = Grain::atomic;
  auto spec = struct_of({{"containers", list_of(container, Grain::keyed, {"name"})},
                         {"volumes", list_of(volume, Grain::keyed, {"name"})},
                         {"nodeSelector", selector},
                         {"tolerations", list_of(struct_of({{"key", text}}), Grain::atomic)},
                         {"restartPolicy", text},
                         {"hostNetwork", of_type(Type::boolean)},
                         {"replicas", number}});
  spec->required = {"containers"};
  return spec;
}

inline SchemaPtr test_condition() {
  const SchemaPtr text = of_type(Type::string);
  return struct_of({{"type", text}, {"status", text}});
}

inline SchemaPtr test_metadata() {
  const SchemaPtr text = of_type(Type::string);
  auto owner = struct_of({{"uid", text}, {"name", text}});
  owner->grain = Grain::atomic;
  auto metadata = struct_of({{"name", text},
                             {"namespace", text},
                             {"labels", map_of(text)},
                             {"annotations", map_of(text)},
                             {"finalizers", list_of(text, Grain::set)},
                             {"ownerReferences", list_of(owner, Grain::keyed, {"uid"})}});
  metadata->preserve_unknown = true;
  return metadata;
}

// A built-in kind: it has a name.
inline const Schema& test_pod() {
  static const SchemaPtr schema = [] {
    const SchemaPtr text = of_type(Type::string);
    auto pod = struct_of(
        {{"apiVersion", text},
         {"kind", text},
         {"metadata", test_metadata()},
         {"spec", test_pod_spec()},
         {"status",
          struct_of({{"phase", text},
                     {"conditions", list_of(test_condition(), Grain::keyed, {"type"})}})}});
    pod->name = "io.k8s.api.core.v1.Pod";
    return pod;
  }();
  return *schema;
}

// A custom kind, as a CRD describes one.
inline const Schema& test_sandbox() {
  static const SchemaPtr schema = [] {
    const SchemaPtr text = of_type(Type::string);
    auto open = std::make_shared<Schema>();
    open->type = Type::object;
    open->preserve_unknown = true;
    const auto any_number = std::make_shared<Schema>();
    any_number->int_or_string = true;
    return struct_of(
        {{"apiVersion", text},
         {"kind", text},
         {"metadata", test_metadata()},
         {"spec", struct_of({{"podTemplate", struct_of({{"spec", test_pod_spec()}})},
                             {"operatingMode", text},
                             {"tags", list_of(text, Grain::set)},
                             {"extra", open},
                             {"share", any_number},
                             {"settings", map_of(text)}})},
         {"status",
          struct_of({{"podIPs", list_of(text, Grain::atomic)},
                     {"conditions", list_of(test_condition(), Grain::keyed, {"type"})}})}});
  }();
  return *schema;
}

}  // namespace hearth::patch
