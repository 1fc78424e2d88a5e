// Lists of objects page by page, the newest first.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "e2b/routes.h"

namespace hearth::e2b {

// The last object of a page. As text: base64url of TIME "__" NAMESPACE "/" NAME.
struct PageMark {
  Time made;
  std::string key;

  bool operator==(const PageMark&) const = default;
};
std::string render_page_mark(const PageMark& mark);
// Throws Refusal(400).
PageMark parse_page_mark(std::string_view text);

struct PageQuery {
  std::size_t limit = 100;
  std::optional<PageMark> after;
};
// limit and nextToken. Throws Refusal(400).
PageQuery parse_page_query(const Call& call);

struct Page {
  std::vector<Object> objects;
  std::string next;  // empty: this was the last
};
Page take_page(std::vector<Object> all, const PageQuery& query);
void sort_newest_first(std::vector<Object>& all);

}  // namespace hearth::e2b
