// A multipart body (RFC 7578) as it arrives: part after part, piece after piece, in constant
// memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "http/http.h"
#include "serve/exchange.h"

namespace hearth::serve {

class MultipartReader {
 public:
  struct Part {
    std::string name;                     // of the form's field
    std::optional<std::string> filename;  // whole, as it was sent; may hold anything
    http::Headers headers;
  };

  // Throws Error(invalid) for a content type that is not multipart/form-data with a boundary.
  MultipartReader(Source body, std::string_view content_type);

  // The next part; what nobody read of the present one is passed over. Nothing after the last.
  // Throws Error(invalid) for a body that is not what it says, and for more or larger heads of
  // parts than anyone needs.
  std::optional<Part> next_part();

  // A piece of the present part: valid until the next call; empty at its end.
  std::string_view read_piece();
  Source source() {
    return [this] { return read_piece(); };
  }

 private:
  bool fill();
  std::string_view take(std::size_t count);
  std::string read_line();
  http::Headers read_head();

  Source body_;
  std::string delimiter_;     // what stands before every part but the first
  std::string kept_;          // where a delimiter may have begun at the end of a piece
  std::string_view current_;  // what is here and not used up: a piece of the body, or kept_
  bool in_part_ = true;       // what is before the first is a part that nobody wants
  bool is_over_ = false;
  std::size_t parts_ = 0;
};

// The value of a parameter such as boundary or filename in "form-data; name=\"x\"; filename=y".
// Nothing when there is none.
std::optional<std::string> find_header_parameter(std::string_view header, std::string_view name);

}  // namespace hearth::serve
