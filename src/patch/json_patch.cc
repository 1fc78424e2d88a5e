// RFC 6902: a list of operations on a document, by JSON pointer (RFC 6901).
//
// A patch is small and what it makes can be large: copies of copies double. So what may grow is
// counted (bytes copied, elements moved, nesting), and a patch that exceeds it is refused.
#include <algorithm>
#include <charconv>
#include <utility>

#include "model/status.h"
#include "patch/patch.h"
#include "patch/patch_internal.h"

namespace hearth::patch {
namespace {

using model::JsonArray;
using model::JsonObject;

// Both as kube-apiserver has them.
constexpr std::size_t kMostOperations = 10'000;
constexpr std::size_t kMostCopiedBytes = 3 << 20;
// Elements that insertions and removals may push along; a second or so of work.
constexpr std::size_t kMostMovedElements = 100'000'000;

constexpr std::size_t kUnlimited = static_cast<std::size_t>(-1);

using Tokens = std::vector<std::string>;

std::string unescape(std::string_view token) {
  std::string text;
  text.reserve(token.size());
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      text += token[i];
      continue;
    }
    const char next = i + 1 < token.size() ? token[i + 1] : '\0';
    if (next != '0' && next != '1') throw_patch_rejected();
    text += next == '0' ? '~' : '/';
    ++i;
  }
  return text;
}

Tokens parse_pointer(std::string_view pointer) {
  Tokens tokens;
  if (pointer.empty()) return tokens;
  if (pointer[0] != '/') throw_patch_rejected();
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    tokens.push_back(unescape(pointer.substr(0, end)));
    pointer.remove_prefix(end);
    if (tokens.size() > model::kMostDepth) throw_patch_rejected();
  }
  return tokens;
}

std::size_t parse_index(std::string_view token, std::size_t limit) {
  std::size_t index = 0;
  const char* end = token.data() + token.size();
  const auto [at, error] = std::from_chars(token.data(), end, index);
  const bool has_leading_zero = token.size() > 1 && token[0] == '0';
  if (error != std::errc() || at != end || has_leading_zero || index >= limit)
    throw_patch_rejected();
  return index;
}

Json* find_child(Json& parent, const std::string& token) {
  if (JsonObject* object = parent.if_object()) return object->if_contains(token);
  if (JsonArray* array = parent.if_array()) return &(*array)[parse_index(token, array->size())];
  return nullptr;
}

// The value at the end of the first `count` tokens.
Json& get(Json& document, const Tokens& tokens, std::size_t count) {
  Json* at = &document;
  for (std::size_t i = 0; i < count; ++i) {
    at = find_child(*at, tokens[i]);
    if (!at) throw_patch_rejected();
  }
  return *at;
}

struct Extent {
  std::size_t bytes = 0;
  std::size_t depth = 0;  // 0 for scalars
};

// How large a value would be as text, about; stops counting beyond `most` bytes.
Extent measure(const Json& value, std::size_t most) {
  Extent all{2, 0};
  const auto add = [&](const Json& below, std::size_t extra) {
    const Extent part = measure(below, most - std::min(most, all.bytes));
    all.bytes += part.bytes + extra;
    all.depth = std::max(all.depth, part.depth + 1);
  };
  if (const auto* text = value.if_string()) {
    all.bytes += text->size();
  } else if (const JsonObject* object = value.if_object()) {
    all.depth = 1;
    for (const auto& [name, below] : *object) {
      if (all.bytes > most) break;
      add(below, name.size() + 4);
    }
  } else if (const JsonArray* array = value.if_array()) {
    all.depth = 1;
    for (const Json& below : *array) {
      if (all.bytes > most) break;
      add(below, 1);
    }
  }
  return all;
}

class JsonPatch {
 public:
  explicit JsonPatch(Json& document) : document_(document) {}

  void run(const JsonObject& operation) {
    const std::string_view op = text_of(operation, "op");
    const Tokens path = parse_pointer(required_text(operation, "path"));
    if (op == "add") {
      add(path, copy_of_value(operation));
    } else if (op == "remove") {
      take(path);
    } else if (op == "replace") {
      replace(path, copy_of_value(operation));
    } else if (op == "move") {
      move(parse_pointer(required_text(operation, "from")), path);
    } else if (op == "copy") {
      copy(parse_pointer(required_text(operation, "from")), path);
    } else if (op == "test") {
      test(path, operation);
    } else {
      throw_patch_rejected();
    }
  }

 private:
  static std::string_view text_of(const JsonObject& operation, std::string_view name) {
    const Json* value = operation.if_contains(name);
    if (!value || value->is_null()) return {};
    if (!value->is_string())
      model::throw_bad_request("error decoding patch: json: cannot unmarshal " + std::string(name) +
                               " of an operation into a string");
    return value->get_string();
  }

  static std::string_view required_text(const JsonObject& operation, std::string_view name) {
    if (!operation.if_contains(name)) throw_patch_rejected();
    return text_of(operation, name);
  }

  static Json copy_of_value(const JsonObject& operation) {
    const Json* value = operation.if_contains("value");
    if (!value) throw_patch_rejected();
    return *value;
  }

  static void check_depth(const Tokens& path, const Extent& extent) {
    if (path.size() + extent.depth > model::kMostDepth) throw_patch_rejected();
  }

  void count_moved(std::size_t elements) {
    moved_elements_ += elements;
    if (moved_elements_ > kMostMovedElements) throw_patch_rejected();
  }

  void count_copied(const Extent& extent) {
    copied_bytes_ += extent.bytes;
    if (copied_bytes_ > kMostCopiedBytes) throw_patch_rejected();
  }

  void add(const Tokens& path, Json value) {
    check_depth(path, measure(value, kUnlimited));
    place(path, std::move(value));
  }

  void place(const Tokens& path, Json value) {
    if (path.empty()) {
      document_ = std::move(value);
      return;
    }
    Json& parent = get(document_, path, path.size() - 1);
    if (JsonObject* object = parent.if_object()) {
      (*object)[path.back()] = std::move(value);
    } else if (JsonArray* array = parent.if_array()) {
      const std::size_t index =
          path.back() == "-" ? array->size() : parse_index(path.back(), array->size() + 1);
      count_moved(array->size() - index);
      array->insert(array->begin() + index, std::move(value));
    } else {
      throw_patch_rejected();
    }
  }

  // The RFC wants it to be there. kube-apiserver does not, of a member, and people's patches rely
  // on that: "replace" is what they write for a label that may or may not be set.
  void replace(const Tokens& path, Json value) {
    check_depth(path, measure(value, kUnlimited));
    Json& parent = get(document_, path, path.empty() ? 0 : path.size() - 1);
    if (JsonObject* object = path.empty() ? nullptr : parent.if_object())
      (*object)[path.back()] = std::move(value);
    else
      get(document_, path, path.size()) = std::move(value);
  }

  // Removes and returns it.
  Json take(const Tokens& path) {
    if (path.empty()) return std::exchange(document_, nullptr);
    Json& parent = get(document_, path, path.size() - 1);
    Json* child = find_child(parent, path.back());
    if (!child) throw_patch_rejected();
    Json value = std::move(*child);
    if (JsonObject* object = parent.if_object()) {
      count_moved(object->size());
      object->stable_erase(path.back());
    } else {
      JsonArray& array = parent.get_array();
      const std::size_t index = parse_index(path.back(), array.size());
      count_moved(array.size() - index);
      array.erase(array.begin() + index);
    }
    return value;
  }

  void move(const Tokens& from, const Tokens& to) {
    // Into itself: there would be nothing left to hold it.
    if (from.size() < to.size() && std::equal(from.begin(), from.end(), to.begin()))
      throw_patch_rejected();
    if (from == to) {
      get(document_, from, from.size());
      return;
    }
    Json value = take(from);
    if (to.size() > from.size()) {
      const Extent extent = measure(value, kMostCopiedBytes);
      count_copied(extent);
      check_depth(to, extent);
    }
    place(to, std::move(value));
  }

  void copy(const Tokens& from, const Tokens& to) {
    const Json& source = get(document_, from, from.size());
    const Extent extent = measure(source, kMostCopiedBytes);
    count_copied(extent);
    check_depth(to, extent);
    place(to, Json(source));
  }

  void test(const Tokens& path, const JsonObject& operation) {
    const Json* wanted = operation.if_contains("value");
    const bool wants_nothing = !wanted || wanted->is_null();
    Json& parent = get(document_, path, path.empty() ? 0 : path.size() - 1);
    const Json* found = path.empty() ? &parent : find_child(parent, path.back());
    // A member that is not there is null, for kube-apiserver.
    if (!found || found->is_null()) {
      if (!wants_nothing) throw_patch_rejected();
      return;
    }
    if (wants_nothing || !model::is_same(*found, *wanted)) throw_patch_rejected();
  }

  Json& document_;
  std::size_t copied_bytes_ = 0;
  std::size_t moved_elements_ = 0;
};

[[noreturn]] void throw_too_many(std::size_t count) {
  model::Status status;
  status.code = 413;
  status.reason = "RequestEntityTooLarge";
  status.message = "Request entity too large: The allowed maximum operations in a JSON patch is " +
                   std::to_string(kMostOperations) + ", got " + std::to_string(count);
  throw model::StatusError(std::move(status));
}

}  // namespace

void apply_json_patch(Json& target, const Json& operations) {
  constexpr std::string_view kOperation = "handlers.jsonPatchOp";
  const JsonArray* list = operations.if_array();
  if (!list && !operations.is_null())
    model::throw_bad_request("error decoding patch: " +
                             unmarshal_error(operations, "[]" + std::string(kOperation)));
  if (!list) return;
  if (list->size() > kMostOperations) throw_too_many(list->size());
  for (const Json& operation : *list)
    if (!operation.is_object())
      model::throw_bad_request("error decoding patch: " + unmarshal_error(operation, kOperation));
  JsonPatch patch(target);
  for (const Json& operation : *list) patch.run(operation.get_object());
  // Nothing that the API serves is anything else.
  if (!target.is_object()) throw_patch_rejected();
}

}  // namespace hearth::patch
