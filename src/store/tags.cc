#include "store/tags.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/error.h"

namespace hearth::store {
namespace {

constexpr std::size_t kLengthBytes = 4;

void append_counted(std::string& bytes, std::string_view text) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
    fail(Code::invalid, "a tag of {} bytes is too long", text.size());
  }
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    bytes.push_back(static_cast<char>((text.size() >> (8 * i)) & 0xff));
  }
  bytes.append(text);
}

std::string_view counted_at(const char* at) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<std::size_t>(static_cast<unsigned char>(at[i])) << (8 * i);
  }
  return {at + kLengthBytes, length};
}

// Takes one counted text off the front of bytes from outside.
std::string_view take_counted(std::string_view& rest) {
  if (rest.size() < kLengthBytes) fail(Code::invalid, "tags end in the middle of a length");
  const std::string_view text = counted_at(rest.data());
  if (text.size() > rest.size() - kLengthBytes) {
    fail(Code::invalid, "tags end in the middle of a text");
  }
  rest.remove_prefix(kLengthBytes + text.size());
  return text;
}

}  // namespace

Tags::Tags(std::initializer_list<Pair> pairs) : Tags(std::vector<Pair>(pairs)) {}

Tags::Tags(const std::vector<Pair>& pairs) {
  std::vector<Pair> sorted;
  sorted.reserve(pairs.size());
  std::size_t size = 0;
  for (const Pair& pair : pairs) {
    const auto at = std::ranges::lower_bound(sorted, pair.first, {}, &Pair::first);
    if (at != sorted.end() && at->first == pair.first)
      at->second = pair.second;
    else
      sorted.insert(at, pair);
    size += 2 * kLengthBytes + pair.first.size() + pair.second.size();
  }
  bytes_.reserve(size);
  for (const auto& [name, value] : sorted) {
    append_counted(bytes_, name);
    append_counted(bytes_, value);
  }
}

Tags Tags::parse_packed(std::string bytes) {
  std::optional<std::string_view> before;
  for (std::string_view rest = bytes; !rest.empty();) {
    const std::string_view name = take_counted(rest);
    take_counted(rest);
    if (before && *before >= name) fail(Code::invalid, "tags are not in order");
    before = name;
  }
  Tags tags;
  tags.bytes_ = std::move(bytes);
  return tags;
}

std::optional<std::string_view> Tags::find(std::string_view name) const {
  for (const auto& [known, value] : *this) {
    if (known == name) return value;
    if (known > name) break;
  }
  return std::nullopt;
}

Tags::Pair Tags::Iterator::operator*() const {
  const std::string_view name = counted_at(at_);
  return {name, counted_at(name.data() + name.size())};
}

Tags::Iterator& Tags::Iterator::operator++() {
  const std::string_view value = (**this).second;
  at_ = value.data() + value.size();
  return *this;
}

}  // namespace hearth::store
