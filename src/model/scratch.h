// Memory for JSON that lives no longer than a request.
//
// A tree of JSON is hundreds of small allocations, and freeing them takes as long as making them.
// Trees that are made here are laid out one after the other, and gone all at once. A copy of a tree
// is made where the tree is: nothing that is copied from one may outlive the Scratch. Assigning to
// a member of another tree, and rendering as text, is safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/storage_ptr.hpp>

#include "model/json.h"

namespace hearth::model {

using Storage = boost::json::storage_ptr;

class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() = default;

  Storage storage() { return &resource_; }

 private:
  // Enough for the trees of most writes. What does not fit is asked for in ever larger pieces. Not
  // on the stack, where it would be filled with zeros.
  static constexpr std::size_t kFirst = 32 << 10;

  std::unique_ptr<unsigned char[]> first_ = std::make_unique_for_overwrite<unsigned char[]>(kFirst);
  boost::json::monotonic_resource resource_{first_.get(), kFirst};
};

// As those of json.h and read_json.h, with their values in `storage`.
ParsedJson parse_json(std::string_view text, Storage storage);
Json read_json(std::string_view text, Storage storage);

// A copy of what code in this process made, no different from one that was written as text and read
// again. Throws Error(invalid) for what could not be: text that is no UTF-8, numbers that are no
// JSON, nesting that is too deep.
Json checked_copy(const Json& value, Storage storage);

// For memory that a thread renders in again and again: empties it, and lets go of it if it has
// become large.
void empty_room(std::string& room);

// As to_text(), behind what is there.
void append_text(std::string& out, const Json& value);
// The same of a string.
void append_text(std::string& out, std::string_view text);

}  // namespace hearth::model
