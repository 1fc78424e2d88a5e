// Multipart bodies from strangers: the parts are the same however the bytes arrive.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "serve/multipart.h"

using namespace hearth;

namespace {

std::optional<std::vector<std::string>> read_all(std::string_view body, std::string_view type,
                                                 std::size_t piece_size) {
  std::string piece;
  const serve::Source source = [&] {
    piece = body.substr(0, piece_size);
    body.remove_prefix(piece.size());
    return std::string_view(piece);
  };
  std::vector<std::string> all;
  try {
    serve::MultipartReader reader(source, type);
    while (const auto part = reader.next_part()) {
      std::string text = part->name + '\n' + part->filename.value_or("") + '\n';
      for (auto read = reader.read_piece(); !read.empty(); read = reader.read_piece()) text += read;
      all.push_back(text);
    }
  } catch (const Error& error) {
    HEARTH_ASSERT(error.code() == Code::invalid);
    return std::nullopt;
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t line = input.find('\n');
  if (line == std::string_view::npos) return 0;
  const std::string_view type = input.substr(0, line);
  const std::string_view body = input.substr(line + 1);
  const auto whole = read_all(body, type, body.size() + 1);
  HEARTH_ASSERT(whole == read_all(body, type, 1));
  HEARTH_ASSERT(whole == read_all(body, type, 7));
  return 0;
}
