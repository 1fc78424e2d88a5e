#include "e2b/page.h"

#include <algorithm>
#include <utility>

#include "base/base64.h"
#include "base/time_text.h"
#include "e2b/answers.h"
#include "e2b/words.h"
#include "model/meta.h"

namespace hearth::e2b {
namespace {

constexpr std::size_t kMostEntries = 100;
constexpr std::size_t kMostTokenBytes = 1024;
constexpr std::string_view kBetween = "__";

// Several snapshots may be made within a second, and clients take the first of a list for the last.
Time made_at(const Json& object) {
  const auto said = parse_rfc3339(model::annotation_of(object, kMadeAnnotation));
  return said ? *said : model::created_at(object).value_or(Time());
}

PageMark mark_of(const Json& object) {
  return {made_at(object), model::key_of(object).text()};
}

bool comes_before(const PageMark& left, const PageMark& right) {
  return left.made == right.made ? left.key < right.key : left.made > right.made;
}

}  // namespace

std::string render_page_mark(const PageMark& mark) {
  std::string text = base64_encode(format_rfc3339(mark.made, 9) + std::string(kBetween) + mark.key);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

PageMark parse_page_mark(std::string_view text) {
  const auto decoded = text.size() > kMostTokenBytes ? std::nullopt : base64_decode(text);
  const std::string_view plain = decoded ? std::string_view(*decoded) : std::string_view();
  const auto between = plain.find(kBetween);
  const auto time = parse_rfc3339(plain.substr(0, between));
  if (between == plain.npos || !time || plain.find('/', between) == plain.npos)
    refuse(400, "the token of the next page is malformed");
  return {*time, std::string(plain.substr(between + kBetween.size()))};
}

PageQuery parse_page_query(const Call& call) {
  PageQuery query;
  query.limit =
      static_cast<std::size_t>(call.query_number("limit", 1, kMostEntries).value_or(kMostEntries));
  if (const auto token = call.query("nextToken"); token && !token->empty())
    query.after = parse_page_mark(*token);
  return query;
}

void sort_newest_first(std::vector<Object>& all) {
  std::ranges::sort(all, [](const Object& left, const Object& right) {
    return comes_before(mark_of(*left), mark_of(*right));
  });
}

Page take_page(std::vector<Object> all, const PageQuery& query) {
  if (query.after)
    std::erase_if(all,
                  [&](const Object& each) { return !comes_before(*query.after, mark_of(*each)); });
  sort_newest_first(all);
  Page page;
  const bool has_more = all.size() > query.limit;
  if (has_more) all.resize(query.limit);
  if (has_more) page.next = render_page_mark(mark_of(*all.back()));
  page.objects = std::move(all);
  return page;
}

}  // namespace hearth::e2b
