// What lists and watches are filtered by: pairs of text (labels, a few fields), kept with an
// object.
//
// In memory as on disk one run of bytes, because there are as many of these as there are objects: a
// pair costs its text and eight bytes. Sorted by name; a name is there once.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::store {

class Tags {
 public:
  using Pair = std::pair<std::string_view, std::string_view>;  // name, value; views into the Tags

  Tags() = default;
  // In any order. Of pairs with one name the last counts.
  Tags(std::initializer_list<Pair> pairs);
  explicit Tags(const std::vector<Pair>& pairs);

  // The opposite of packed(). Throws Error(invalid) for bytes that packed() never made.
  static Tags parse_packed(std::string bytes);

  std::optional<std::string_view> find(std::string_view name) const;
  bool empty() const { return bytes_.empty(); }
  const std::string& packed() const { return bytes_; }

  class Iterator {
   public:
    Pair operator*() const;
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    friend class Tags;
    explicit Iterator(const char* at) : at_(at) {}
    const char* at_;
  };
  Iterator begin() const { return Iterator(bytes_.data()); }
  Iterator end() const { return Iterator(bytes_.data() + bytes_.size()); }

  bool operator==(const Tags&) const = default;

 private:
  // For each pair: length of the name, name, length of the value, value. Lengths are 32 bits,
  // little-endian.
  std::string bytes_;
};

}  // namespace hearth::store
