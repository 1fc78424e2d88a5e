#include "e2b/list_query.h"

#include <algorithm>

#include "base/base64.h"
#include "base/time_text.h"
#include "e2b/answers.h"
#include "e2b/core.h"
#include "e2b/state.h"
#include "http/head.h"
#include "http/target.h"

namespace hearth::e2b {
namespace {

constexpr std::size_t kMostEntries = 100;
constexpr std::string_view kBetween = "__";
constexpr std::string_view kAscending = "__asc";

// As forms escape: a plus is a space.
std::string unescape(std::string_view text) {
  std::string plain(text);
  std::ranges::replace(plain, '+', ' ');
  auto decoded = http::percent_decode(plain);
  if (!decoded) refuse(400, "the metadata filter has a bad escape");
  return std::move(*decoded);
}

void parse_states(ListQuery& wanted, std::string_view text) {
  wanted.wants_running = wanted.wants_paused = false;
  for (const std::string& each : split_list(text)) {
    if (each == "running")
      wanted.wants_running = true;
    else if (each == "paused")
      wanted.wants_paused = true;
    else
      refuse(400, "'{}' is no state of a sandbox; there are running and paused", each);
  }
}

Order parse_order(std::string_view text) {
  if (text == "desc") return Order::newest_first;
  if (text == "asc") return Order::oldest_first;
  refuse(400, "'{}' is no order; there are asc and desc", text);
}

std::size_t parse_limit(std::string_view text) {
  const auto limit = http::parse_number(text);
  if (!limit || *limit < 1 || *limit > kMostEntries)
    refuse(400, "the limit is '{}', which is no number from 1 to {}", text, kMostEntries);
  return *limit;
}

Time parse_time(std::string_view text) {
  const auto time = parse_rfc3339(text);
  if (!time) refuse(400, "'{}' is no time as RFC 3339 writes it", text);
  return *time;
}

}  // namespace

std::string render_cursor(const Cursor& cursor) {
  std::string text = format_rfc3339(cursor.started, 9) + std::string(kBetween) + cursor.id;
  if (cursor.order == Order::oldest_first) text += kAscending;
  text = base64_encode(text);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

Cursor parse_cursor(std::string_view text) {
  const auto decoded = base64_decode(text);
  if (!decoded) refuse(400, "the token of the next page is malformed");
  std::string_view rest = *decoded;
  Cursor cursor;
  if (rest.ends_with(kAscending)) {
    cursor.order = Order::oldest_first;
    rest.remove_suffix(kAscending.size());
  }
  const auto between = rest.find(kBetween);
  const auto time = parse_rfc3339(rest.substr(0, between));
  if (between == rest.npos || !time) refuse(400, "the token of the next page is malformed");
  cursor.started = *time;
  cursor.id = rest.substr(between + kBetween.size());
  if (!is_sandbox_id(cursor.id)) refuse(400, "the token of the next page is malformed");
  return cursor;
}

Texts parse_metadata_filter(std::string_view text) {
  const std::string whole = unescape(text);
  Texts wanted;
  for (std::string_view rest = whole; !rest.empty();) {
    const auto end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    if (equals == pair.npos) refuse(400, "'{}' in the metadata filter is no pair", pair);
    wanted.insert_or_assign(unescape(pair.substr(0, equals)), unescape(pair.substr(equals + 1)));
  }
  return wanted;
}

ListQuery parse_list_query(std::string_view query) {
  ListQuery wanted;
  std::string states;
  for (const auto& [name, value] : http::query_parameters(query)) {
    if (value.empty()) continue;
    if (name == "metadata") wanted.metadata = parse_metadata_filter(value);
    // Some clients repeat it, others write a list.
    if (name == "state") states += value + ",";
    if (name == "order") wanted.order = parse_order(value);
    if (name == "limit") wanted.limit = parse_limit(value);
    if (name == "startedAfter") wanted.started_after = parse_time(value);
    if (name == "template") wanted.template_reference = value;
    if (name == "nextToken") wanted.cursor = parse_cursor(value);
  }
  if (!states.empty()) parse_states(wanted, states);
  if (wanted.cursor && wanted.cursor->order != wanted.order)
    refuse(400, "the token of the next page is of a list in the other order");
  return wanted;
}

}  // namespace hearth::e2b
