#include "serve/file_answer.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "http/date.h"
#include "http/fields.h"
#include "http/head.h"

namespace hearth::serve {
namespace {

FileFacts look_at(int file_fd) {
  struct stat status{};
  if (::fstat(file_fd, &status) != 0) throw_errno("look at a file");
  if (!S_ISREG(status.st_mode)) fail(Code::invalid, "it is no regular file");
  FileFacts facts;
  facts.size = static_cast<std::uint64_t>(status.st_size);
  facts.modified = Time(std::chrono::seconds(status.st_mtim.tv_sec) +
                        std::chrono::nanoseconds(status.st_mtim.tv_nsec));
  // The inode too: a file that is replaced by another one of the same size in the same moment is
  // still another one.
  facts.etag = fmt::format("\"{:x}-{:x}-{:x}\"", facts.modified.time_since_epoch().count(),
                           facts.size, status.st_ino);
  return facts;
}

// Whether a list of entity tags names this one, by the weak comparison (RFC 9110 section 8.8.3.2).
// Our tags have no commas.
bool names_tag(std::string_view list, std::string_view etag) {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    std::string_view item = http::trim(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (item == "*") return true;
    if (item.starts_with("W/")) item.remove_prefix(2);
    if (item == etag) return true;
  }
  return false;
}

bool is_known(const http::Headers& headers, const FileFacts& file) {
  if (const std::string* tags = headers.find("If-None-Match")) return names_tag(*tags, file.etag);
  const auto since = http::parse_date(headers.value("If-Modified-Since"));
  return since && std::chrono::floor<std::chrono::seconds>(file.modified) <= *since;
}

// Whether a range is still one of the file that the client knows.
bool is_range_wanted(const http::Headers& headers, const FileFacts& file) {
  const std::string* condition = headers.find("If-Range");
  if (condition == nullptr) return true;
  return *condition == file.etag || *condition == http::format_date(file.modified);
}

struct Range {
  std::optional<std::uint64_t> first;
  std::optional<std::uint64_t> last;  // without `first`: how many at the end
};

// One range of bytes. Nothing for everything else, which is answered with the whole file.
std::optional<Range> parse_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes=";
  if (!http::equal_ignoring_case(text.substr(0, kUnit.size()), kUnit)) return std::nullopt;
  text = http::trim(text.substr(kUnit.size()));
  const auto dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view first = text.substr(0, dash);
  const std::string_view last = text.substr(dash + 1);
  const Range range{.first = http::parse_number(first), .last = http::parse_number(last)};
  if (!range.first && !first.empty()) return std::nullopt;
  if (!range.last && !last.empty()) return std::nullopt;
  if (!range.first && !range.last) return std::nullopt;
  if (range.first && range.last && *range.last < *range.first) return std::nullopt;
  return range;
}

FilePart cut(const Range& range, std::uint64_t size) {
  if (!range.first) {
    const std::uint64_t count = std::min(*range.last, size);
    if (count == 0) return {.status = 416};
    return {.status = 206, .offset = size - count, .size = count};
  }
  if (*range.first >= size) return {.status = 416};
  const std::uint64_t last = std::min(range.last.value_or(size - 1), size - 1);
  return {.status = 206, .offset = *range.first, .size = last - *range.first + 1};
}

}  // namespace

FilePart choose_part(const http::Request& request, const FileFacts& file) {
  if (is_known(request.headers, file)) return {.status = 304};
  const FilePart whole{.status = 200, .offset = 0, .size = file.size};
  // Clients that always ask for a range mean an empty file too.
  if (request.method != "GET" || file.size == 0) return whole;
  const auto range = parse_range(request.headers.value("Range"));
  if (!range || !is_range_wanted(request.headers, file)) return whole;
  return cut(*range, file.size);
}

void answer_with_file(Exchange& exchange, int file_fd, http::Headers headers) {
  const FileFacts file = look_at(file_fd);
  const FilePart part = choose_part(exchange.request(), file);
  http::Response response{.status = part.status, .headers = std::move(headers)};
  response.headers.set("Last-Modified", http::format_date(file.modified));
  response.headers.set("ETag", file.etag);
  response.headers.set("Accept-Ranges", "bytes");
  if (part.status == 304) return exchange.respond(response);
  if (part.status == 416) {
    response.headers.set("Content-Range", fmt::format("bytes */{}", file.size));
    return exchange.respond(response);
  }
  if (part.status == 206) {
    response.headers.set("Content-Range", fmt::format("bytes {}-{}/{}", part.offset,
                                                      part.offset + part.size - 1, file.size));
  }
  exchange.begin(response, part.size);
  exchange.send_file(file_fd, part.offset, part.size);
  exchange.end();
}

}  // namespace hearth::serve
