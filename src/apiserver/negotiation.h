// What a client may send and wants to get: Accept, Content-Type, and whether a person reads it.
//
// We answer in JSON or YAML, never in protobuf: every client reads JSON whatever it asked for.
// What is not possible is thrown as StatusError 406 or 415 in the words of kube-apiserver.
#pragma once

#include <string>
#include <string_view>

namespace hearth::apiserver {

enum class Shape { object, table, metadata };

struct Wanted {
  bool is_yaml = false;
  Shape shape = Shape::object;
  // Of meta.k8s.io, for tables and metadata: "v1" or "v1beta1".
  std::string meta_version = "v1";

  std::string_view content_type() const {
    return is_yaml ? "application/yaml" : "application/json";
  }
};
// From an Accept header; an empty one accepts everything.
Wanted negotiate(std::string_view accept);

// How /api and /apis are answered.
enum class DiscoveryForm { legacy, v2, v2beta1 };
DiscoveryForm negotiate_discovery(std::string_view accept);

enum class BodyFormat { json, yaml, protobuf };
// Of a request's Content-Type; JSON if there is none.
BodyFormat body_format(std::string_view content_type);

enum class PatchFormat { json_patch, merge, strategic, apply };
// `is_built_in`: strategic merge is for built-in kinds only.
PatchFormat patch_format(std::string_view content_type, bool is_built_in);

// Whether the answer is indented. `pretty`: the query parameter's text, empty if there is none.
bool wants_pretty(std::string_view pretty, std::string_view user_agent);

}  // namespace hearth::apiserver
