#include "serve/json_answer.h"

#include <algorithm>

#include "base/json_text.h"

namespace hearth::serve {
namespace {

// What is kept before the first of it is sent.
constexpr std::size_t kKept = std::size_t{64} << 10;
// Of a text, what is escaped at once.
constexpr std::size_t kTextPiece = std::size_t{16} << 10;

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// A piece at the front that ends between two characters. (A text of nothing but continuations is
// no UTF-8 wherever it is cut.)
std::string_view cut_piece(std::string_view text) {
  if (text.size() <= kTextPiece) return text;
  std::size_t end = kTextPiece;
  while (end > kTextPiece - 3 && continues_character(text[end])) --end;
  return text.substr(0, end);
}

}  // namespace

void JsonAnswer::send() {
  if (!exchange_.begun()) {
    http::Response head{.status = status_};
    head.headers.set("Content-Type", "application/json");
    exchange_.begin(head);
  }
  exchange_.write(pending_);
  pending_.clear();
}

void JsonAnswer::add(std::string_view json) {
  pending_ += json;
  if (pending_.size() > kKept) send();
}

void JsonAnswer::add_text(std::string_view text) {
  pending_ += '"';
  while (!text.empty()) {
    const std::string_view piece = cut_piece(text);
    text.remove_prefix(piece.size());
    const std::string quoted = json_quote(piece);
    add(std::string_view(quoted).substr(1, quoted.size() - 2));
  }
  pending_ += '"';
}

void JsonAnswer::finish() {
  if (!exchange_.begun()) return exchange_.respond(http::json_response(status_, pending_));
  send();
  exchange_.end();
}

}  // namespace hearth::serve
