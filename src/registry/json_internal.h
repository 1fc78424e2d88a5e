// JSON from strangers: bounded, and every "is it there, is it a text?" in one place.
//
// `what` in the messages is ours ("the manifest of ..."), never the document's own text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

namespace hearth::registry {

// Throws Error(invalid) for what is not JSON or nests deeper than 32.
boost::json::value parse_json(std::string_view text, std::string_view what);

// The object that it must be. Throws Error(invalid).
const boost::json::object& object_of(const boost::json::value& value, std::string_view what);

// A member, or null when it is not there or JSON's null. Throws Error(invalid) when it is something
// else than asked for.
const boost::json::object* find_object(const boost::json::object& in, std::string_view name);
const boost::json::array* find_array(const boost::json::object& in, std::string_view name);
// Empty when it is not there. Also refused: NUL bytes, which no text of ours survives.
std::string find_text(const boost::json::object& in, std::string_view name);
std::vector<std::string> find_texts(const boost::json::object& in, std::string_view name);
// Throws Error(invalid) also when it is not there or negative.
std::uint64_t get_size(const boost::json::object& in, std::string_view name);

}  // namespace hearth::registry
