// GET /files.
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "envd/cors.h"
#include "envd/file_rules.h"
#include "envd/service_internal.h"
#include "http/target.h"
#include "inside/content.h"
#include "inside/paths.h"
#include "serve/gzip.h"

namespace hearth::envd {
namespace {

using Kind = RangeAnswer::Kind;

constexpr std::size_t kSniffed = 512;
constexpr std::size_t kPiece = std::size_t{128} << 10;
// Files of /proc and /sys say that they are empty. So much of one is read.
constexpr std::size_t kMaxUncounted = std::size_t{64} << 10;

// From the start; less only at the end of the file.
std::string read_start(int fd, std::size_t most) {
  std::string bytes(most, '\0');
  std::size_t size = 0;
  while (size < most) {
    const ssize_t got = ::pread(fd, bytes.data() + size, most - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

Time modified_time(const struct stat& status) {
  return Time(std::chrono::seconds(status.st_mtim.tv_sec) +
              std::chrono::nanoseconds(status.st_mtim.tv_nsec));
}

http::Response make_head(const std::string& path, const struct stat& status,
                         std::string_view first_bytes) {
  const std::string_view name = inside::base_name(path);
  http::Response head;
  head.headers.add("Vary", "Accept-Encoding");
  head.headers.add("Content-Disposition", content_disposition(name));
  head.headers.add("Last-Modified", format_http_date(modified_time(status)));
  head.headers.add("Content-Type", content_type_of(name, first_bytes));
  add_cors(head.headers);
  return head;
}

// From this size on it matters whether gzip saves anything: if not, it costs either end a
// processor, and the kernel's own way of sending files.
constexpr off_t kLarge = off_t{1} << 20;
constexpr std::size_t kTrial = std::size_t{128} << 10;
// Each is a processor's work that no limit of the sandbox's counts.
constexpr std::size_t kMostCompressions = 4;

bool would_shrink(int fd) {
  const std::string start = read_start(fd, kTrial);
  std::size_t size = 0;
  serve::GzipWriter trial([&](std::string_view bytes) { size += bytes.size(); });
  trial.write(start);
  trial.end();
  return size < start.size() / 10 * 9;
}

void send_gzip(serve::Exchange& exchange, http::Response head, int fd) {
  head.headers.add("Content-Encoding", "gzip");
  exchange.begin(head);
  serve::GzipWriter writer([&](std::string_view bytes) { exchange.write(bytes); });
  std::string piece(kPiece, '\0');
  while (true) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("read a file");
    if (got == 0) break;
    writer.write(std::string_view(piece).substr(0, static_cast<std::size_t>(got)));
  }
  writer.end();
  exchange.end();
}

void send_as_it_is(serve::Exchange& exchange, http::Response head, const inside::OpenedFile& file) {
  const auto size = static_cast<std::uint64_t>(file.status.st_size);
  const RangeAnswer wanted =
      evaluate_conditions(exchange.request().headers, size, modified_time(file.status));
  head.headers.add("Accept-Ranges", "bytes");
  ByteRange range{.begin = 0, .size = size};
  switch (wanted.kind) {
    case Kind::whole:
      break;
    case Kind::part:
      range = wanted.range;
      head.status = 206;
      head.headers.add("Content-Range", fmt::format("bytes {}-{}/{}", range.begin,
                                                    range.begin + range.size - 1, size));
      break;
    case Kind::not_modified:
      head.status = 304;
      head.headers.remove("Content-Type");
      return exchange.respond(head);
    case Kind::precondition_failed:
      throw RestError(412, "the file is not as the request expects it");
    case Kind::unsatisfiable:
      head.status = 416;
      head.headers.add("Content-Range", fmt::format("bytes */{}", size));
      return exchange.respond(head);
  }
  exchange.begin(head, range.size);
  exchange.send_file(file.fd.get(), range.begin, range.size);
  exchange.end();
}

}  // namespace

Service::Place Service::rest_place_of(const std::string& user, const std::string& path) const {
  try {
    return place_of(user, path);
  } catch (const RpcError&) {
    const std::string name = user.empty() ? core_.settings().user : user;
    throw RestError(401,
                    fmt::format("error looking up user '{}': user: unknown user {}", name, name));
  }
}

void Service::get_file(serve::Exchange& exchange) {
  const http::Request& request = exchange.request();
  check_file_access(request, core_.settings().token, "read", std::chrono::system_clock::now());
  const auto parameter = [&](std::string_view name) {
    return http::find_query_parameter(request.query, name).value_or("");
  };
  const Place place = rest_place_of(parameter("username"), parameter("path"));
  auto encoding = choose_encoding(request.headers);
  const inside::OpenedFile file = inside::open_for_reading(place.path);
  if (has_conditions(request.headers)) encoding = Encoding::identity;
  if (!encoding) {
    throw RestError(406, fmt::format("no acceptable encoding found, supported: identity, gzip"));
  }
  if (file.status.st_size == 0) {
    const std::string all = read_start(file.fd.get(), kMaxUncounted);
    http::Response whole = make_head(place.path, file.status, all);
    whole.headers.add("Accept-Ranges", "bytes");
    whole.body = all;
    return exchange.respond(whole);
  }
  http::Response head = make_head(place.path, file.status, read_start(file.fd.get(), kSniffed));
  if (*encoding == Encoding::gzip) {
    const Seat seat(compressions_, kMostCompressions);
    const bool can_choose = takes_identity(request.headers);
    if (!seat && !can_choose) throw RestError(503, "too many downloads with gzip; try again");
    const bool is_worth_it =
        seat && (!can_choose || file.status.st_size < kLarge || would_shrink(file.fd.get()));
    if (is_worth_it) return send_gzip(exchange, std::move(head), file.fd.get());
  }
  send_as_it_is(exchange, std::move(head), file);
}

}  // namespace hearth::envd
