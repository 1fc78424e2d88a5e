#include "patch/field_set.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "model/scratch.h"

namespace hearth::patch {
namespace {

// Every number of so many digits is an integer for everyone.
constexpr std::size_t kMostPlainDigits = 15;

// Members come first, then elements by key, by value, by index.
int rank(std::string_view element) {
  switch (element.empty() ? '\0' : element[0]) {
    case 'f':
      return 0;
    case 'k':
      return 1;
    case 'v':
      return 2;
    default:
      return 3;
  }
}

bool comes_before(std::string_view left, std::string_view right) {
  const int left_rank = rank(left);
  const int right_rank = rank(right);
  return left_rank != right_rank ? left_rank < right_rank : left < right;
}

std::string scalar_text(const Json& value) {
  // 80 and 80.0 are one key.
  if (value.is_double())
    if (const auto integer = model::as_integer(value)) return std::to_string(*integer);
  return model::to_text(value);
}

[[noreturn]] void refuse(std::string_view element, std::string_view why) {
  fail(Code::invalid, "'{}' is no path element of a field set: {}", element, why);
}

// Reads one piece of plain text or a plain number off the front; empty if there is none.
std::string_view take_plain(std::string_view& text, bool may_be_number) {
  std::size_t end = 0;
  if (text.starts_with('"')) {
    end = 1;
    while (end < text.size() && text[end] >= ' ' && text[end] <= '~' && text[end] != '"' &&
           text[end] != '\\')
      ++end;
    if (end == text.size() || text[end] != '"') return {};
    ++end;
  } else if (may_be_number && text.substr(0, 1) != "0") {
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end > kMostPlainDigits) return {};
  }
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end);
  return taken;
}

// Whether a key is surely written as we write it. Nearly all are, and parsing costs.
bool is_canonical_key(std::string_view element) {
  std::string_view rest = element.substr(2);
  std::string_view last;
  char expected = '{';
  while (rest.starts_with(expected)) {
    rest.remove_prefix(1);
    const std::string_view name = take_plain(rest, /*may_be_number=*/false);
    if (name.empty() || (!last.empty() && last >= name) || !rest.starts_with(':')) return false;
    rest.remove_prefix(1);
    if (take_plain(rest, /*may_be_number=*/true).empty()) return false;
    last = name;
    expected = ',';
  }
  return rest == "}" && !last.empty();
}

std::string parse_key_element(std::string_view element) {
  if (is_canonical_key(element)) return std::string(element);
  const Json keys = model::parse_json(element.substr(2)).value;
  if (!keys.is_object()) refuse(element, "a key is an object");
  std::vector<std::pair<std::string_view, const Json*>> sorted;
  for (const auto& [name, value] : keys.get_object()) sorted.emplace_back(name, &value);
  return key_element(std::move(sorted));
}

std::string parse_element(std::string_view element) {
  if (element.size() < 2 || element[1] != ':') refuse(element, "it has no type");
  switch (element[0]) {
    case 'f':
      return std::string(element);
    case 'k':
      return parse_key_element(element);
    case 'v':
      return value_element(model::parse_json(element.substr(2)).value);
    case 'i': {
      int index = 0;
      const char* end = element.data() + element.size();
      const auto [at, error] = std::from_chars(element.data() + 2, end, index);
      if (error != std::errc() || at != end) refuse(element, "an index is a number");
      return "i:" + std::to_string(index);
    }
    default:
      refuse(element, "its type is unknown");
  }
}

// Elements that were spelt differently may turn out to be one.
void join_duplicates(FieldSet& set) {
  std::vector<FieldSet::Child> joined;
  joined.reserve(set.children.size());
  for (FieldSet::Child& child : set.children) {
    if (!joined.empty() && joined.back().element == child.element)
      joined.back().set = unite(std::move(joined.back().set), std::move(child.set));
    else
      joined.push_back(std::move(child));
  }
  set.children = std::move(joined);
}

FieldSet parse_node(const Json& node) {
  const model::JsonObject* members = node.if_object();
  if (!members) fail(Code::invalid, "a field set is made of objects");
  FieldSet set;
  set.self = members->empty();
  set.children.reserve(members->size());
  for (const auto& [name, below] : *members) {
    if (name == ".")
      set.self = true;
    else
      set.append(parse_element(name), parse_node(below));
  }
  set.sort();
  join_duplicates(set);
  return set;
}

std::string key_path(std::string_view element) {
  const Json keys = model::parse_json(element.substr(2)).value;
  std::string text = "[";
  for (const auto& [name, value] : keys.get_object()) {
    if (text.size() > 1) text += ',';
    text += name;
    text += '=';
    text += model::to_text(value);
  }
  return text + ']';
}

std::string path_of(std::string_view element) {
  const std::string_view rest = element.substr(2);
  switch (element[0]) {
    case 'f':
      return '.' + std::string(rest);
    case 'k':
      return key_path(element);
    case 'v':
      return "[=" + std::string(rest) + ']';
    default:
      return '[' + std::string(rest) + ']';
  }
}

void visit_paths(const FieldSet& set, const std::string& prefix,
                 const std::function<void(const std::string&)>& act) {
  for (const FieldSet::Child& child : set.children)
    if (child.set.self) act(prefix + path_of(child.element));
  for (const FieldSet::Child& child : set.children)
    if (!child.set.children.empty()) visit_paths(child.set, prefix + path_of(child.element), act);
}

}  // namespace

const FieldSet* FieldSet::find(std::string_view element) const {
  const auto found = std::lower_bound(
      children.begin(), children.end(), element,
      [](const Child& child, std::string_view name) { return comes_before(child.element, name); });
  return found != children.end() && found->element == element ? &found->set : nullptr;
}

bool FieldSet::has(std::span<const std::string_view> path) const {
  const FieldSet* node = this;
  for (const std::string_view element : path) {
    node = node->find(element);
    if (!node) return false;
  }
  return node->self;
}

void FieldSet::append(std::string element, FieldSet set) {
  if (!set.empty()) children.push_back({std::move(element), std::move(set)});
}

void FieldSet::sort() {
  const auto in_order = [](const Child& left, const Child& right) {
    return comes_before(left.element, right.element);
  };
  if (!std::is_sorted(children.begin(), children.end(), in_order))
    std::sort(children.begin(), children.end(), in_order);
}

bool FieldSet::operator==(const FieldSet&) const = default;

std::string member_element(std::string_view name) {
  std::string element = "f:";
  element += name;
  return element;
}

std::string value_element(const Json& value) {
  return "v:" + scalar_text(value);
}

std::string key_element(std::vector<std::pair<std::string_view, const Json*>> keys) {
  std::sort(keys.begin(), keys.end(),
            [](const auto& left, const auto& right) { return left.first < right.first; });
  std::string element = "k:{";
  for (const auto& [name, value] : keys) {
    if (element.size() > 3) element += ',';
    element += model::to_text(Json(name));
    element += ':';
    element += scalar_text(*value);
  }
  return element + '}';
}

FieldSet unite(FieldSet left, FieldSet right) {
  FieldSet all;
  all.self = left.self || right.self;
  if (right.children.empty() || left.children.empty()) {
    all.children = std::move(right.children.empty() ? left.children : right.children);
    return all;
  }
  all.children.reserve(left.children.size() + right.children.size());
  auto one = left.children.begin();
  auto other = right.children.begin();
  while (one != left.children.end() && other != right.children.end()) {
    if (one->element == other->element) {
      one->set = unite(std::move(one->set), std::move(other->set));
      all.children.push_back(std::move(*one++));
      ++other;
    } else {
      all.children.push_back(
          std::move(comes_before(one->element, other->element) ? *one++ : *other++));
    }
  }
  std::move(one, left.children.end(), std::back_inserter(all.children));
  std::move(other, right.children.end(), std::back_inserter(all.children));
  return all;
}

FieldSet subtract(FieldSet left, const FieldSet& right) {
  left.self = left.self && !right.self;
  if (left.children.empty() || right.children.empty()) return left;
  auto other = right.children.begin();
  auto kept = left.children.begin();
  for (FieldSet::Child& child : left.children) {
    while (other != right.children.end() && comes_before(other->element, child.element)) ++other;
    if (other != right.children.end() && other->element == child.element)
      child.set = subtract(std::move(child.set), other->set);
    if (child.set.empty()) continue;
    if (&*kept != &child) *kept = std::move(child);
    ++kept;
  }
  left.children.erase(kept, left.children.end());
  return left;
}

FieldSet intersect(const FieldSet& left, const FieldSet& right) {
  FieldSet both;
  both.self = left.self && right.self;
  auto other = right.children.begin();
  for (const FieldSet::Child& child : left.children) {
    while (other != right.children.end() && comes_before(other->element, child.element)) ++other;
    if (other == right.children.end()) break;
    if (other->element == child.element)
      both.append(child.element, intersect(child.set, other->set));
  }
  return both;
}

bool overlaps(const FieldSet& left, const FieldSet& right) {
  if (left.self && right.self) return true;
  return std::any_of(right.children.begin(), right.children.end(), [&](const auto& child) {
    const FieldSet* below = left.find(child.element);
    return below && overlaps(*below, child.set);
  });
}

bool contains(const FieldSet& set, const FieldSet& part) {
  if (part.self && !set.self) return false;
  return std::all_of(part.children.begin(), part.children.end(), [&](const auto& child) {
    const FieldSet* below = set.find(child.element);
    return below && contains(*below, child.set);
  });
}

FieldSet parse_field_set(const Json& fields_v1) {
  FieldSet set = parse_node(fields_v1);
  set.self = false;  // nobody owns the whole object
  return set;
}

void append_text(std::string& out, const FieldSet& set) {
  char before = '{';
  if (set.self && !set.children.empty()) {
    out += R"({".":{})";
    before = ',';
  }
  for (const FieldSet::Child& child : set.children) {
    out += before;
    model::append_text(out, std::string_view(child.element));
    out += ':';
    append_text(out, child.set);
    before = ',';
  }
  out += before == '{' ? "{}" : "}";
}

void for_each_path(const FieldSet& set, const std::function<void(const std::string&)>& act) {
  visit_paths(set, "", act);
}

}  // namespace hearth::patch
