// Names of the Kubernetes API: what they may look like, how one is made up, what metadata may hold.
//
// The checks return what is wrong, in the sentences that people know from kube-apiserver; nothing
// for a good name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/json.h"
#include "model/status.h"

namespace hearth::model {

using Problems = std::vector<std::string>;

// "my-name": RFC 1123, at most 63.
Problems check_dns_label(std::string_view name);
// "my.name": RFC 1123, at most 253.
Problems check_dns_subdomain(std::string_view name);
// "my-name", but not with a digit first (RFC 1035).
Problems check_dns1035_label(std::string_view name);
// "prefix.example/Name": keys of labels and annotations, finalizers.
Problems check_qualified_name(std::string_view name);
Problems check_label_value(std::string_view value);

// What the name of a kind's objects has to be.
enum class NameRule {
  subdomain,     // most kinds, and all custom ones
  label,         // Namespace, Service
  path_segment,  // the kinds of RBAC: "system:node"
};
// `is_prefix`: a generateName, which may end in '-'.
Problems check_name(std::string_view name, NameRule rule, bool is_prefix = false);

// metadata.name for a generateName: its first 58 characters and five random ones.
std::string generate_name(std::string_view prefix);

// Annotations of one object, keys and values together.
inline constexpr std::size_t kMostAnnotationBytes = 256 << 10;
std::size_t annotation_bytes(const Json& object);

struct MetaRules {
  bool namespaced = true;
  NameRule name = NameRule::subdomain;
  // Built-in kinds refuse finalizers without a domain that are none of Kubernetes' own.
  bool is_built_in = false;
};
// metadata of an object whose name has been made up already, if it had to be: name, generateName,
// namespace, labels, annotations, ownerReferences, finalizers. Members of a wrong type are the
// schema's to complain about.
std::vector<FieldError> validate_object_meta(const Json& object, const MetaRules& rules);
// No finalizer may come while an object is being deleted.
std::vector<FieldError> validate_new_finalizers(const Json& next, const Json& old);
// Warnings about finalizers that are allowed, but better had a domain (custom resources).
std::vector<std::string> finalizer_warnings(const Json& object);

}  // namespace hearth::model
