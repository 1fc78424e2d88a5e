// Command lines of strangers; what comes out, quoted again, comes out the same.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "runtimeapi/shell_words.h"

using namespace hearth;

namespace {

std::string quote(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\"'\"'";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  try {
    const auto words = runtimeapi::split_shell_words(line);
    std::string again;
    std::size_t bytes = 0;
    for (const std::string& word : words) {
      again += quote(word) + " ";
      bytes += word.size();
    }
    HEARTH_ASSERT(bytes <= size);
    HEARTH_ASSERT(runtimeapi::split_shell_words(again) == words);
  } catch (const Error& error) {
    HEARTH_ASSERT(error.code() == Code::invalid);
  }
  return 0;
}
