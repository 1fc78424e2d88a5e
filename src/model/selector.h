// Which objects a list or a watch wants: label selectors and field selectors.
//
// Parsing throws StatusError 400 in the words of kube-apiserver. Both work on pairs of names and
// values, sorted by name, which is how the store keeps labels and fields beside an object.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/json.h"

namespace hearth::model {

using Labels = std::vector<std::pair<std::string, std::string>>;

// metadata.labels, sorted.
Labels labels_of(const Json& object);
// The value of that name; null for none.
const std::string* find_label(const Labels& labels, std::string_view name);

// A longer one is refused: nobody writes it by hand, and each watcher keeps its own.
inline constexpr std::size_t kMostSelectorBytes = 32 << 10;
void check_selector_length(std::string_view text);

class LabelSelector {
 public:
  enum class Operator { equals, not_equals, in, not_in, exists, absent, greater, less };
  struct Requirement {
    std::string key;
    Operator op = Operator::exists;
    std::vector<std::string> values;
  };

  // Selects everything.
  LabelSelector() = default;
  // "a=b,c!=d,e in (x,y),f notin (z),g,!h,i>3"
  static LabelSelector parse(std::string_view text);
  // A LabelSelector of the API: matchLabels and matchExpressions. An empty one selects everything.
  static LabelSelector from_object(const Json& selector);

  bool matches(const Labels& labels) const;
  bool is_empty() const { return requirements_.empty(); }
  const std::vector<Requirement>& requirements() const { return requirements_; }
  // As `parse` reads it, sorted by key.
  std::string text() const;

 private:
  std::vector<Requirement> requirements_;
};

class FieldSelector {
 public:
  struct Term {
    std::string field;
    std::string value;
    bool is_equal = true;  // false: !=
  };

  FieldSelector() = default;
  // "metadata.name=x,status.phase!=Running"; a backslash stands before ',', '=' and itself.
  static FieldSelector parse(std::string_view text);

  // Throws 400 for a field that is none of `known`. `has_own`: the kind has fields beside
  // metadata.name and metadata.namespace, or is a custom one; the wording differs.
  void require_known(const std::vector<std::string>& known, bool has_own) const;

  // A field that is not among `fields` counts as empty.
  bool matches(const Labels& fields) const;
  bool is_empty() const { return terms_.empty(); }
  const std::vector<Term>& terms() const { return terms_; }
  // The value that the field must have, if there is one: "metadata.name" makes a list a lookup.
  std::optional<std::string_view> required_value(std::string_view field) const;
  std::string text() const;

 private:
  std::vector<Term> terms_;
};

}  // namespace hearth::model
