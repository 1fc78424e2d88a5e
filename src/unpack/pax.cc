#include "unpack/pax.h"

#include <charconv>

#include "base/error.h"

namespace hearth::unpack {
namespace {

constexpr std::string_view kXattrPrefix = "SCHILY.xattr.";

struct PaxRecord {
  std::string_view key;
  std::string_view value;
};

// The first record, taken off `text`. Its length counts itself.
PaxRecord take_record(std::string_view& text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) fail(Code::invalid, "an extended header without a length");
  const std::uint64_t length = parse_decimal(text.substr(0, space));
  if (length > text.size() || length < space + 2 || text[length - 1] != '\n')
    fail(Code::invalid, "an extended header of a wrong length");
  const std::string_view record = text.substr(space + 1, length - space - 2);
  text.remove_prefix(length);
  const std::size_t equals = record.find('=');
  if (equals == std::string_view::npos || equals == 0)
    fail(Code::invalid, "an extended header without a key");
  return {.key = record.substr(0, equals), .value = record.substr(equals + 1)};
}

// An empty value takes back what was said before.
template <typename T, typename Parse>
void set(std::optional<T>& field, std::string_view value, Parse parse) {
  if (value.empty()) {
    field.reset();
  } else {
    field = parse(value);
  }
}

std::string as_text(std::string_view value) {
  return std::string(value);
}

// "1700000000.123456789", perhaps negative, any number of decimals.
PaxTime parse_time(std::string_view text) {
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  PaxTime time;
  const auto [end, error] =
      std::from_chars(whole.data(), whole.data() + whole.size(), time.seconds);
  if (error != std::errc() || end != whole.data() + whole.size())
    fail(Code::invalid, "a time that is none");
  if (point == std::string_view::npos) return time;
  std::string digits(text.substr(point + 1));
  digits.resize(9, '0');
  time.nanoseconds = static_cast<std::uint32_t>(parse_decimal(digits));
  if (whole.starts_with('-') && time.nanoseconds > 0) {
    constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
    if (time.seconds == kLeast) fail(Code::invalid, "a time that is none");
    time.seconds -= 1;
    time.nanoseconds = 1'000'000'000 - time.nanoseconds;
  }
  return time;
}

// Version 0.1: "offset,length,offset,length".
std::vector<Extent> parse_map(std::string_view text) {
  std::vector<std::uint64_t> numbers;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    numbers.push_back(parse_decimal(text.substr(0, comma)));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  if (numbers.size() % 2 != 0) fail(Code::invalid, "half an entry in a sparse file's map");
  std::vector<Extent> extents;
  for (std::size_t i = 0; i < numbers.size(); i += 2)
    extents.push_back({.offset = numbers[i], .length = numbers[i + 1]});
  return extents;
}

void set_sparse(PaxFields& fields, std::string_view key, std::string_view value) {
  fields.sparse = true;
  if (key == "name") {
    fields.sparse_name = value;
  } else if (key == "size" || key == "realsize") {
    fields.sparse_size = parse_decimal(value);
  } else if (key == "map") {
    fields.extents = parse_map(value);
  } else if (key == "offset") {
    fields.extents.push_back({.offset = parse_decimal(value)});
  } else if (key == "numbytes") {
    if (fields.extents.empty()) fail(Code::invalid, "a sparse file's map begins in the middle");
    fields.extents.back().length = parse_decimal(value);
  } else if (key == "major") {
    if (value != "0" && value != "1")
      fail(Code::invalid, "a sparse file of unknown version '{}'", value);
    fields.sparse_map_in_data = value == "1";
  } else if (key == "minor") {
    if (value != "0" && value != "1")
      fail(Code::invalid, "a sparse file of unknown version 'x.{}'", value);
  }
}

void set_field(PaxFields& fields, const PaxRecord& record) {
  constexpr std::string_view kSparsePrefix = "GNU.sparse.";
  if (record.key == "path") {
    set(fields.path, record.value, as_text);
  } else if (record.key == "linkpath") {
    set(fields.link, record.value, as_text);
  } else if (record.key == "size") {
    set(fields.size, record.value, parse_decimal);
  } else if (record.key == "uid") {
    set(fields.uid, record.value, parse_decimal);
  } else if (record.key == "gid") {
    set(fields.gid, record.value, parse_decimal);
  } else if (record.key == "mtime") {
    set(fields.mtime, record.value, parse_time);
  } else if (record.key.starts_with(kXattrPrefix)) {
    fields.xattrs[std::string(record.key.substr(kXattrPrefix.size()))] = record.value;
  } else if (record.key.starts_with(kSparsePrefix)) {
    set_sparse(fields, record.key.substr(kSparsePrefix.size()), record.value);
  }
}

}  // namespace

std::uint64_t parse_decimal(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    fail(Code::invalid, "an extended header with a number that is none");
  return value;
}

PaxFields parse_pax(std::string_view text) {
  PaxFields fields;
  while (!text.empty()) set_field(fields, take_record(text));
  return fields;
}

}  // namespace hearth::unpack
