// The head of a message as views into its bytes: for proxies, which look at heads and pass them on.
//
// As strict as http/head.h, of which it takes the framing rules; allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "http/head.h"
#include "http/http.h"

namespace hearth::http {

struct FieldView {
  std::string_view name;
  std::string_view value;
  std::string_view line;  // all of it, with its CRLF
};

class HeadView {
 public:
  // More header fields are a 431.
  static constexpr std::size_t kMostFields = 128;

  std::string_view method;  // of a request
  std::string_view target;  // of a request
  std::string_view reason;  // of a response
  unsigned status = 0;      // of a response
  int minor = 1;            // HTTP/1.minor
  Framing framing;

  const FieldView* begin() const { return fields_.data(); }
  const FieldView* end() const { return fields_.data() + size_; }
  // The first of that name; null when there is none.
  const FieldView* find(std::string_view name) const;
  std::string_view value(std::string_view name) const;
  // As of Headers.
  bool has_token(std::string_view name, std::string_view token) const;
  bool wants_keep_alive() const;

  // For parsers: false when there is no room.
  bool add(FieldView field);
  void clear();

 private:
  std::array<FieldView, kMostFields> fields_;
  std::size_t size_ = 0;
};

// `bytes` is what a HeadScanner found complete, and must outlive `head`. Returns a problem, or
// fills `head`.
std::optional<Problem> parse_request_head(std::string_view bytes, std::size_t target_bytes,
                                          HeadView& head);
std::optional<Problem> parse_response_head(std::string_view bytes, bool for_head, HeadView& head);

}  // namespace hearth::http
