// An answer in JSON that may be long: what is short goes out in one, with its length; the rest
// piece by piece, so that memory does not depend on it.
#pragma once

#include <string>
#include <string_view>

#include "serve/exchange.h"

namespace hearth::serve {

class JsonAnswer {
 public:
  explicit JsonAnswer(Exchange& exchange, unsigned status = 200)
      : exchange_(exchange), status_(status) {}

  // JSON as it is.
  void add(std::string_view json);
  // `text` as a JSON string: quoted, escaped, bytes that are not UTF-8 replaced by U+FFFD.
  void add_text(std::string_view text);
  // Once, after everything.
  void finish();

 private:
  void send();

  Exchange& exchange_;
  unsigned status_;
  std::string pending_;
};

}  // namespace hearth::serve
