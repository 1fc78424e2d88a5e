#include "model/names.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json_text.h"

namespace hearth::model {
namespace {

constexpr std::size_t kMostLabel = 63;
constexpr std::size_t kMostSubdomain = 253;
// Five characters that make no words: no vowels, and nothing that looks like another.
constexpr std::string_view kSuffixAlphabet = "bcdfghjklmnpqrstvwxz2456789";
constexpr std::size_t kSuffixLength = 5;
constexpr std::size_t kMostPrefix = kMostLabel - kSuffixLength;

constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_alphanumeric(char c) {
  return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

// [a-z0-9]([-a-z0-9]*[a-z0-9])?
bool looks_like_label(std::string_view text) {
  return !text.empty() && is_lower_or_digit(text.front()) && is_lower_or_digit(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_lower_or_digit(c) || c == '-'; });
}

bool looks_like_subdomain(std::string_view text) {
  while (true) {
    const std::size_t dot = text.find('.');
    if (!looks_like_label(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

// ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]
bool looks_like_label_text(std::string_view text) {
  return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

std::string too_long(std::size_t most, std::string_view of = "characters") {
  return fmt::format("must be no more than {} {}", most, of);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

Problems check_path_segment(std::string_view name, bool is_prefix) {
  Problems problems;
  if (!is_prefix)
    for (const std::string_view word : {".", ".."})
      if (name == word) problems.push_back(fmt::format("may not be '{}'", word));
  for (const char c : {'/', '%'})
    if (name.find(c) != std::string_view::npos)
      problems.push_back(fmt::format("may not contain '{}'", c));
  return problems;
}

void add(std::vector<FieldError>& errors, const std::string& field, std::string_view value,
         const Problems& problems) {
  for (const std::string& problem : problems)
    errors.push_back(invalid(field, json_quote(value), problem));
}

std::string_view text_of(const Json& value) {
  const auto* text = value.if_string();
  return text ? std::string_view(text->data(), text->size()) : std::string_view();
}

std::string_view view(boost::json::string_view text) {
  return {text.data(), text.size()};
}

void check_names(const Json& object, const MetaRules& rules, std::vector<FieldError>& errors) {
  const std::string_view prefix = text_at(object, {"metadata", "generateName"});
  if (!prefix.empty())
    add(errors, "metadata.generateName", prefix, check_name(prefix, rules.name, true));
  const std::string_view name = text_at(object, {"metadata", "name"});
  if (name.empty())
    errors.push_back(required("metadata.name", "name or generateName is required"));
  else
    add(errors, "metadata.name", name, check_name(name, rules.name));
  const std::string_view ns = text_at(object, {"metadata", "namespace"});
  if (!rules.namespaced) {
    if (!ns.empty()) errors.push_back(forbidden("metadata.namespace", "not allowed on this type"));
  } else if (ns.empty()) {
    errors.push_back(required("metadata.namespace"));
  } else {
    add(errors, "metadata.namespace", ns, check_dns_label(ns));
  }
}

void check_labels(const Json& object, std::vector<FieldError>& errors) {
  const JsonObject* labels = object_at(object, {"metadata", "labels"});
  if (!labels) return;
  for (const auto& [key, value] : *labels) {
    add(errors, "metadata.labels", view(key), check_qualified_name(view(key)));
    add(errors, "metadata.labels", text_of(value), check_label_value(text_of(value)));
  }
}

void check_annotations(const Json& object, std::vector<FieldError>& errors) {
  const JsonObject* annotations = object_at(object, {"metadata", "annotations"});
  if (!annotations) return;
  // Upper case is allowed in a prefix here, unlike in labels.
  for (const auto& [key, value] : *annotations)
    add(errors, "metadata.annotations", view(key), check_qualified_name(lower(view(key))));
  if (annotation_bytes(object) > kMostAnnotationBytes)
    errors.push_back(
        {FieldProblem::too_long, "metadata.annotations",
         fmt::format("Too long: may not be more than {} bytes", kMostAnnotationBytes)});
}

bool is_api_version(std::string_view text) {
  return std::count(text.begin(), text.end(), '/') <= 1 && !text.ends_with('/');
}

void check_owner(const Json& owner, std::vector<FieldError>& errors) {
  const std::string field = "metadata.ownerReferences";
  const std::string_view api_version = text_at(owner, {"apiVersion"});
  if (api_version.empty() || !is_api_version(api_version))
    errors.push_back(
        invalid(field + ".apiVersion", json_quote(api_version), "version must not be empty"));
  for (const std::string_view member : {"kind", "name", "uid"})
    if (text_at(owner, {member}).empty())
      errors.push_back(invalid(fmt::format("{}.{}", field, member), "\"\"", "must not be empty"));
  if (api_version == "v1" && text_at(owner, {"kind"}) == "Event")
    errors.push_back(
        invalid(field, to_text(owner), "/v1, Kind=Event is disallowed from being an owner"));
}

void check_owners(const Json& object, std::vector<FieldError>& errors) {
  const JsonArray* owners = array_at(object, {"metadata", "ownerReferences"});
  if (!owners) return;
  std::string first;
  for (const Json& owner : *owners) {
    check_owner(owner, errors);
    if (!is_true_at(owner, {"controller"})) continue;
    const std::string controller =
        fmt::format("{}/{}", text_at(owner, {"kind"}), text_at(owner, {"name"}));
    if (first.empty())
      first = controller;
    else
      errors.push_back(
          invalid("metadata.ownerReferences", to_text(*owners),
                  fmt::format("Only one reference can have Controller set to true. Found \"true\" "
                              "in references for {} and {}",
                              first, controller)));
  }
}

bool is_standard_finalizer(std::string_view name) {
  return name == kOrphan || name == kForeground || name == "kubernetes";
}

void check_finalizers(const Json& object, bool is_built_in, std::vector<FieldError>& errors) {
  const JsonArray* finalizers = array_at(object, {"metadata", "finalizers"});
  if (!finalizers) return;
  bool has_orphan = false;
  bool has_foreground = false;
  for (const Json& finalizer : *finalizers) {
    const std::string_view name = text_of(finalizer);
    const Problems problems = check_qualified_name(name);
    add(errors, "metadata.finalizers", name, problems);
    if (is_built_in && problems.empty() && !is_standard_finalizer(name) &&
        name.find('/') == std::string_view::npos)
      errors.push_back(
          invalid("metadata.finalizers", json_quote(name),
                  "name is neither a standard finalizer name nor is it fully qualified"));
    has_orphan |= name == kOrphan;
    has_foreground |= name == kForeground;
  }
  if (has_orphan && has_foreground)
    errors.push_back(
        invalid("metadata.finalizers", to_text(*finalizers),
                fmt::format("finalizer {} and {} cannot be both set", kOrphan, kForeground)));
}

std::vector<std::string> finalizers_of(const Json& object) {
  std::vector<std::string> names;
  if (const JsonArray* finalizers = array_at(object, {"metadata", "finalizers"}))
    for (const Json& finalizer : *finalizers) names.emplace_back(text_of(finalizer));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

Problems check_dns_label(std::string_view name) {
  Problems problems;
  if (name.size() > kMostLabel) problems.push_back(too_long(kMostLabel));
  if (looks_like_label(name)) return problems;
  // A name that would do where dots are allowed gets told about the dots.
  if (looks_like_subdomain(name))
    problems.emplace_back("must not contain dots");
  else
    problems.emplace_back(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
        "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "
        "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')");
  return problems;
}

Problems check_dns_subdomain(std::string_view name) {
  Problems problems;
  if (name.size() > kMostSubdomain) problems.push_back(too_long(kMostSubdomain));
  if (!looks_like_subdomain(name))
    problems.emplace_back(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
        "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex "
        "used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
  return problems;
}

Problems check_dns1035_label(std::string_view name) {
  Problems problems;
  if (name.size() > kMostLabel) problems.push_back(too_long(kMostLabel));
  if (!looks_like_label(name) || (name.front() >= '0' && name.front() <= '9'))
    problems.emplace_back(
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
        "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
        "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')");
  return problems;
}

Problems check_qualified_name(std::string_view name) {
  static constexpr std::string_view kNameRule =
      "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
      "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
      "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
  Problems problems;
  const std::size_t slash = name.find('/');
  if (slash != std::string_view::npos) {
    const std::string_view prefix = name.substr(0, slash);
    name.remove_prefix(slash + 1);
    if (name.find('/') != std::string_view::npos)
      return {
          fmt::format("a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. "
                      "'example.com/MyName')",
                      kNameRule)};
    if (prefix.empty())
      problems.emplace_back("prefix part must be non-empty");
    else
      for (const std::string& problem : check_dns_subdomain(prefix))
        problems.push_back("prefix part " + problem);
  }
  if (name.empty())
    problems.emplace_back("name part must be non-empty");
  else if (name.size() > kMostLabel)
    problems.push_back("name part " + too_long(kMostLabel, "bytes"));
  if (!looks_like_label_text(name)) problems.push_back(fmt::format("name part {}", kNameRule));
  return problems;
}

Problems check_label_value(std::string_view value) {
  Problems problems;
  if (value.size() > kMostLabel) problems.push_back(too_long(kMostLabel, "bytes"));
  if (!value.empty() && !looks_like_label_text(value))
    problems.emplace_back(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
        "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
        "'my_value',  or '12345', regex used for validation is "
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
  return problems;
}

Problems check_name(std::string_view name, NameRule rule, bool is_prefix) {
  if (rule == NameRule::path_segment) return check_path_segment(name, is_prefix);
  std::string masked(name);
  // What follows the dash is ours, and starts with a letter or a digit.
  if (is_prefix && masked.size() > 1 && masked.ends_with('-')) masked.back() = 'a';
  if (rule == NameRule::label) return check_dns_label(masked);
  return check_dns_subdomain(masked);
}

std::string generate_name(std::string_view prefix) {
  std::array<unsigned char, 4 * kSuffixLength> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw_errno("getrandom");
  std::string name(prefix.substr(0, kMostPrefix));
  for (std::size_t i = 0; i < kSuffixLength; ++i) {
    unsigned number = 0;
    for (std::size_t k = 0; k < 4; ++k) number = number << 8 | bytes[4 * i + k];
    name += kSuffixAlphabet[number % kSuffixAlphabet.size()];
  }
  return name;
}

std::size_t annotation_bytes(const Json& object) {
  const JsonObject* annotations = object_at(object, {"metadata", "annotations"});
  std::size_t bytes = 0;
  if (annotations)
    for (const auto& [key, value] : *annotations) bytes += key.size() + text_of(value).size();
  return bytes;
}

std::vector<FieldError> validate_object_meta(const Json& object, const MetaRules& rules) {
  std::vector<FieldError> errors;
  check_names(object, rules, errors);
  check_labels(object, errors);
  check_annotations(object, errors);
  check_owners(object, errors);
  check_finalizers(object, rules.is_built_in, errors);
  return errors;
}

std::vector<FieldError> validate_new_finalizers(const Json& next, const Json& old) {
  const std::vector<std::string> before = finalizers_of(old);
  std::vector<std::string> added;
  for (const std::string& name : finalizers_of(next))
    if (!std::binary_search(before.begin(), before.end(), name)) added.push_back(json_quote(name));
  if (added.empty()) return {};
  return {forbidden("metadata.finalizers",
                    fmt::format("no new finalizers can be added if the object is being deleted, "
                                "found new finalizers []string{{{}}}",
                                fmt::join(added, ", ")))};
}

std::vector<std::string> finalizer_warnings(const Json& object) {
  std::vector<std::string> warnings;
  for (const std::string& name : finalizers_of(object))
    if (!is_standard_finalizer(name) && name.find('/') == std::string::npos)
      warnings.push_back(fmt::format(
          "metadata.finalizers: {}: prefer a domain-qualified finalizer name to avoid accidental "
          "conflicts with other finalizer writers",
          json_quote(name)));
  return warnings;
}

}  // namespace hearth::model
