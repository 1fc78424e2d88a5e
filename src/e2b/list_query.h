// What GET /v2/sandboxes asks for, and where its next page begins.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "e2b/body.h"

namespace hearth::e2b {

enum class Order { newest_first, oldest_first };

// The last entry of a page. As text: base64url of TIME "__" ID, with "__asc" behind it where the
// oldest come first.
struct Cursor {
  Time started;
  std::string id;
  Order order = Order::newest_first;

  bool operator==(const Cursor&) const = default;
};
std::string render_cursor(const Cursor& cursor);
// Throws Refusal(400).
Cursor parse_cursor(std::string_view text);

// "k=v&k=v", where the whole has been escaped, and each key and value before that; `text` is what
// the query holds, decoded once. Throws Refusal(400).
Texts parse_metadata_filter(std::string_view text);

struct ListQuery {
  bool wants_running = true;
  bool wants_paused = true;
  Order order = Order::newest_first;
  std::size_t limit = 100;
  std::optional<Time> started_after;  // that moment included
  std::optional<std::string> template_reference;
  std::optional<Cursor> cursor;
  Texts metadata;
};

// `query` as it was sent. Throws Refusal(400), Error(invalid).
ListQuery parse_list_query(std::string_view query);

}  // namespace hearth::e2b
