#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "base/json_text.h"
#include "model/selector.h"
#include "model/status.h"

namespace hearth::model {
namespace {

// The terms between commas that no backslash stands before.
std::vector<std::string_view> split_terms(std::string_view text) {
  std::vector<std::string_view> terms;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '\\') {
      ++i;
    } else if (i >= text.size() || text[i] == ',') {
      terms.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  if (start < text.size()) terms.push_back(text.substr(start));
  std::sort(terms.begin(), terms.end());
  return terms;
}

std::string unescape(std::string_view text) {
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',' || text[i] == '=')
      throw_bad_request(fmt::format("invalid field selector: unescaped character in value: {}",
                                    static_cast<int>(text[i])));
    if (text[i] == '\\') {
      ++i;
      if (i == text.size() || std::string_view("\\,=").find(text[i]) == std::string_view::npos)
        throw_bad_request(fmt::format("invalid field selector: invalid escape sequence: {}",
                                      text.substr(i - 1, 2)));
    }
    value += text[i];
  }
  return value;
}

std::string escape(std::string_view text) {
  std::string value;
  for (const char c : text) {
    if (c == '\\' || c == ',' || c == '=') value += '\\';
    value += c;
  }
  return value;
}

}  // namespace

FieldSelector FieldSelector::parse(std::string_view text) {
  check_selector_length(text);
  FieldSelector selector;
  for (const std::string_view term : split_terms(text)) {
    if (term.empty()) continue;
    const std::size_t at = std::min(term.find('='), term.find("!="));
    if (at == std::string_view::npos)
      throw_bad_request(fmt::format("invalid selector: '{}'; can't understand '{}'", text, term));
    const bool is_equal = term[at] == '=';
    const bool is_double = at + 1 < term.size() && term[at + 1] == '=';
    selector.terms_.push_back({std::string(term.substr(0, at)),
                               unescape(term.substr(at + (is_double ? 2 : 1))), is_equal});
  }
  // Once more: "a==b" was sorted as it was written, and is "a=b".
  std::ranges::sort(selector.terms_, {}, [](const Term& term) {
    return std::tie(term.field, term.is_equal, term.value);
  });
  return selector;
}

void FieldSelector::require_known(const std::vector<std::string>& known, bool has_own) const {
  for (const Term& term : terms_) {
    if (std::find(known.begin(), known.end(), term.field) != known.end()) continue;
    if (has_own) throw_bad_request("field label not supported: " + term.field);
    throw_bad_request(fmt::format(
        "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        json_quote(term.field)));
  }
}

bool FieldSelector::matches(const Labels& fields) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    const std::string* value = find_label(fields, term.field);
    return (value ? *value == term.value : term.value.empty()) == term.is_equal;
  });
}

std::optional<std::string_view> FieldSelector::required_value(std::string_view field) const {
  for (const Term& term : terms_)
    if (term.is_equal && term.field == field) return term.value;
  return std::nullopt;
}

std::string FieldSelector::text() const {
  std::string text;
  for (const Term& term : terms_) {
    if (!text.empty()) text += ',';
    text += term.field + (term.is_equal ? "=" : "!=") + escape(term.value);
  }
  return text;
}

}  // namespace hearth::model
