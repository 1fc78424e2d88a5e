// Packed tags: refused, or exactly what packing their pairs gives again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "store/tags.h"

namespace hearth::store {
namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void unpack(const std::string& bytes) {
  Tags tags;
  try {
    tags = Tags::parse_packed(bytes);
  } catch (const Error& error) {
    check(error.code() == Code::invalid);
    return;
  }
  std::vector<Tags::Pair> pairs;
  for (const auto& [name, value] : tags) {
    check(tags.find(name) == value);
    pairs.emplace_back(name, value);
  }
  check(Tags(pairs).packed() == bytes);
}

}  // namespace
}  // namespace hearth::store

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  hearth::store::unpack(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
