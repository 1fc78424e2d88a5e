// POST /files and /files/compose.
#include <algorithm>
#include <set>

#include <boost/json.hpp>

#include "base/json_text.h"
#include "envd/service_internal.h"
#include "http/head.h"
#include "http/target.h"
#include "inside/content.h"
#include "inside/paths.h"
#include "serve/gzip.h"
#include "serve/multipart.h"

namespace hearth::envd {
namespace {

constexpr std::string_view kMetadataHeader = "X-Metadata-";
constexpr std::size_t kMaxMetadataKey = 246;
constexpr std::size_t kMaxMetadata = 4096;
// A request's body and what it names.
constexpr std::size_t kMaxCompose = std::size_t{1} << 20;
constexpr std::size_t kMaxSources = 10'000;

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7F; });
}

// What the headers want noted with every file. Throws RestError(400).
inside::Metadata metadata_of(const http::Headers& headers) {
  inside::Metadata metadata;
  std::size_t total = 0;
  for (const http::Field& field : headers) {
    const std::string_view name = field.name;
    if (!http::equal_ignoring_case(name.substr(0, kMetadataHeader.size()), kMetadataHeader))
      continue;
    std::string key(name.substr(kMetadataHeader.size()));
    std::ranges::transform(key, key.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    if (key.empty()) throw RestError(400, "invalid metadata: a key is empty");
    if (key.size() > kMaxMetadataKey)
      throw RestError(400, fmt::format("invalid metadata: a key of {} bytes", key.size()));
    if (!is_printable(key) || !is_printable(field.value))
      throw RestError(400, "invalid metadata: only printable ASCII is allowed");
    if (!metadata.emplace(key, field.value).second) continue;  // the first one counts
    total += inside::kMetadataPrefix.size() + key.size() + field.value.size();
    if (total > kMaxMetadata)
      throw RestError(400, fmt::format("invalid metadata: more than {} bytes", kMaxMetadata));
  }
  return metadata;
}

std::string metadata_json(const inside::Metadata& metadata) {
  std::string text;
  for (const auto& [key, value] : metadata) {
    text += text.empty() ? '{' : ',';
    text += json_quote(key) + ':' + json_quote(value);
  }
  return text + '}';
}

// What is told about a file that was written: no more than this, because clients compare.
std::string written_json(const std::string& path, const inside::Metadata& metadata) {
  std::string text = fmt::format(R"({{"path":{},"name":{},"type":"file")", json_quote(path),
                                 json_quote(inside::base_name(path)));
  if (!metadata.empty()) text += R"(,"metadata":)" + metadata_json(metadata);
  return text + '}';
}

serve::Source decoded_body(serve::Exchange& exchange) {
  const std::string_view encoding = exchange.request().headers.value("Content-Encoding");
  if (encoding.empty() || http::equal_ignoring_case(encoding, "identity")) return exchange.source();
  if (http::equal_ignoring_case(encoding, "gzip")) return serve::inflate_gzip(exchange.source());
  throw RestError(400, fmt::format("unsupported Content-Encoding: '{}'", encoding));
}

// A client that announces more than there is room for need not try.
void check_room(const http::Headers& headers, const std::string& path) {
  const auto length = http::parse_number(headers.value("Content-Length"));
  const auto room = inside::free_bytes(path);
  if (length && room && *length > *room) {
    throw RestError(
        507, fmt::format("attempted to write {} bytes: not enough disk space available", *length));
  }
}

void write_file(const std::string& path, inside::Owner owner, const serve::Source& source,
                const inside::Metadata& metadata) {
  inside::FileWriter writer(path, owner);
  for (std::string_view piece = source(); !piece.empty(); piece = source()) writer.write(piece);
  writer.finish(metadata);
}

struct Compose {
  std::vector<std::string> sources;
  std::string destination;
  std::string user;
};

Compose parse_compose(std::string_view body) {
  namespace json = boost::json;
  boost::system::error_code error;
  const json::value value = json::parse(body, error);
  const json::object* object = error ? nullptr : value.if_object();
  if (object == nullptr) throw RestError(400, "the body is not a JSON object");
  const auto text = [&](const json::value* field) {
    if (field == nullptr || !field->is_string()) throw RestError(400, "a path is not a string");
    return std::string(field->get_string());
  };
  Compose compose;
  compose.destination = text(object->if_contains("destination"));
  if (const json::value* user = object->if_contains("username");
      user != nullptr && !user->is_null())
    compose.user = text(user);
  const json::value* sources = object->if_contains("source_paths");
  if (sources == nullptr || !sources->is_array() || sources->get_array().empty())
    throw RestError(400, "source_paths names no files");
  if (sources->get_array().size() > kMaxSources) throw RestError(400, "too many source_paths");
  for (const json::value& source : sources->get_array()) compose.sources.push_back(text(&source));
  return compose;
}

}  // namespace

void Service::post_files(serve::Exchange& exchange) {
  const http::Request& request = exchange.request();
  check_file_access(request, core_.settings().token, "write", std::chrono::system_clock::now());
  const std::string user = http::find_query_parameter(request.query, "username").value_or("");
  const std::string wanted = http::find_query_parameter(request.query, "path").value_or("");
  const inside::Metadata metadata = metadata_of(request.headers);
  const std::string_view content_type = request.headers.value("Content-Type");
  std::string type(content_type.substr(0, content_type.find(';')));
  while (type.ends_with(' ')) type.pop_back();

  std::set<std::string> written;
  std::string answer;
  const auto write_one = [&](const std::string& path, const serve::Source& source) {
    const Place place = rest_place_of(user, path);
    if (!written.insert(place.path).second) {
      throw RestError(400,
                      fmt::format("path '{}' is named by two files of one upload", place.path));
    }
    check_room(request.headers, place.path);
    write_file(place.path, place.owner(), source, metadata);
    answer += answer.empty() ? '[' : ',';
    answer += written_json(place.path, metadata);
  };

  if (http::equal_ignoring_case(type, "application/octet-stream")) {
    if (wanted.empty())
      throw RestError(400, "path query parameter is required for raw body upload");
    write_one(wanted, decoded_body(exchange));
  } else if (http::equal_ignoring_case(type, "multipart/form-data")) {
    serve::MultipartReader parts(decoded_body(exchange), content_type);
    while (const auto part = parts.next_part()) {
      if (part->name != "file") continue;
      const std::string path = wanted.empty() ? part->filename.value_or("") : wanted;
      if (path.empty()) throw RestError(400, "a file has no name");
      write_one(path, parts.source());
    }
  } else {
    throw RestError(400, fmt::format("unsupported Content-Type: '{}'", type));
  }
  respond_json(exchange, 200, answer.empty() ? "[]" : answer + ']');
}

// One file of several, in their order; these are gone afterwards.
void Service::compose_files(serve::Exchange& exchange) {
  const Compose compose = parse_compose(exchange.read_body(kMaxCompose));
  const Place place = rest_place_of(compose.user, compose.destination);
  std::vector<std::string> sources;
  for (const std::string& source : compose.sources) {
    sources.push_back(rest_place_of(compose.user, source).path);
    if (inside::resolve(sources.back()).value_or(sources.back()) ==
        inside::resolve(place.path).value_or(place.path)) {
      throw RestError(400, fmt::format("'{}' is a source and the destination", place.path));
    }
  }
  // All of them are there, or nothing is touched.
  for (const std::string& source : sources) inside::open_for_reading(source);
  {
    inside::FileWriter writer(place.path, place.owner());
    for (const std::string& source : sources) writer.append(inside::open_for_reading(source));
    writer.finish({});
  }
  for (const std::string& source : sources) inside::remove(source);
  inside::Names names;
  respond_json(exchange, 200, to_json(entry_info(inside::describe(place.path, names))));
}

}  // namespace hearth::envd
