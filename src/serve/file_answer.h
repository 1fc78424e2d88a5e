// GET and HEAD of a file: what is still known to the client is not sent again, and a part where a
// part was asked for (RFC 9110 sections 13 and 14).
//
//   200 all of it, 206 the one range asked for, 304 nothing new, 416 a range that is not there
//
// Several ranges, and what is no range at all, are answered with all of it. Every answer says
// Last-Modified, ETag and Accept-Ranges. Memory does not depend on the file's size: the kernel
// sends it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "http/http.h"
#include "serve/exchange.h"

namespace hearth::serve {

// `file_fd` is open for reading and borrowed; `headers` says what the file is (Content-Type,
// Content-Disposition). Its size is what it is now: what is added later is not sent, and a file
// that becomes shorter cuts the answer off. Throws Error(invalid) for what is no regular file, and
// what Exchange throws.
void answer_with_file(Exchange& exchange, int file_fd, http::Headers headers);

// What follows is the part without sockets.

struct FileFacts {
  std::uint64_t size = 0;
  Time modified;
  std::string etag;  // with its quotes
};

struct FilePart {
  unsigned status = 200;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

// Which part of such a file answers `request`.
FilePart choose_part(const http::Request& request, const FileFacts& file);

}  // namespace hearth::serve
