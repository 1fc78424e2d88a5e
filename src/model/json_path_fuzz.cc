// A path either parses or is refused; evaluating it on any value ends, and what was put somewhere
// is found there.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "model/json_path.h"

namespace {

using hearth::model::JsonPath;

void check(bool holds) {
  if (!holds) std::abort();
}

void evaluate(std::string_view path_text, std::string_view json_text) {
  const JsonPath path = JsonPath::parse(path_text);
  static const auto kSample = hearth::model::parse_json(
      R"({"a":{"b":[{"type":"Ready","x":1},{"type":"Other","x":2.5}]},"c":[[1,2],[3]],"d":"e"})");
  for (const auto* value : path.find_all(kSample.value)) check(value != nullptr);
  auto value = hearth::model::parse_json(json_text).value;
  check(path.find_all(value, 10).size() <= 10);
  if (!path.is_simple()) return;
  path.set(value, "here");
  const auto* found = path.find_first(value);
  check(found && found->is_string() && found->get_string() == "here");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The path ends at the first newline, the value follows.
  const std::size_t line = text.find('\n');
  try {
    evaluate(text.substr(0, line), line == std::string_view::npos ? "{}" : text.substr(line + 1));
  } catch (const hearth::Error& error) {
    check(error.code() == hearth::Code::invalid);
  }
  return 0;
}
