#include "sandboxd/files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/time_text.h"
#include "http/target.h"
#include "linux/files.h"
#include "serve/file_answer.h"
#include "serve/json_answer.h"
#include "serve/multipart.h"

namespace hearth::sandboxd {
namespace {

using inside::Place;
using Kind = Place::Kind;

constexpr std::string_view kTemporary = ".sandboxd-tmp-";

std::string_view without_slashes(std::string_view path) {
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return path;
}

unsigned parse_mode(std::string_view text) {
  const bool is_octal = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '7'; });
  if (text.size() != 4 || !is_octal || text.front() != '0')
    fail(Code::invalid, "mode '{}' is not of the form 0644", text);
  unsigned mode = 0;
  for (const char c : text) mode = mode * 8 + static_cast<unsigned>(c - '0');
  return mode;
}

bool parse_flag(std::string_view name, std::string_view text) {
  // What Go takes for a boolean, because clients were tried against it.
  constexpr std::array<std::string_view, 6> kYes = {"1", "t", "T", "true", "TRUE", "True"};
  constexpr std::array<std::string_view, 6> kNo = {"0", "f", "F", "false", "FALSE", "False"};
  if (std::ranges::find(kYes, text) != kYes.end()) return true;
  if (std::ranges::find(kNo, text) != kNo.end()) return false;
  fail(Code::invalid, "{} '{}' is neither true nor false", name, text);
}

// Of a name in a folder: of what a link leads to. Nothing where that is outside, or nowhere.
std::optional<struct stat> look_at(const Root& root, const std::string& folder, const Place& place,
                                   const std::string& name) {
  struct stat status{};
  if (::fstatat(place.folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return std::nullopt;
  if (!S_ISLNK(status.st_mode)) return status;
  try {
    const Place target = root.folder.locate(folder + "/" + name);
    if (target.kind == Kind::nothing) return std::nullopt;
    return target.status;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string_view type_of(mode_t mode) {
  if (S_ISREG(mode)) return "file";
  return S_ISDIR(mode) ? "directory" : "other";
}

void answer_listing(serve::Exchange& exchange, const Root& root, const std::string& path,
                    const Place& place) {
  const std::string_view shown = without_slashes(path);
  serve::JsonAnswer answer(exchange);
  answer.add("{\"path\":");
  answer.add_text(fmt::format("/{}", shown == "." ? "" : shown));
  answer.add(",\"entries\":[");
  std::string_view separator;
  for (const std::string& name : linux::list_folder(place.folder.get())) {
    const auto status = look_at(root, path, place, name);
    if (!status) continue;
    answer.add(separator);
    answer.add("{\"name\":");
    answer.add_text(name);
    answer.add(fmt::format(R"(,"size":{},"type":"{}","modified_at":"{}","mode":"0{:03o}"}})",
                           status->st_size, type_of(status->st_mode),
                           format_rfc3339(Time(std::chrono::seconds(status->st_mtim.tv_sec))),
                           status->st_mode & 0777));
    separator = ",";
  }
  answer.add("]}");
  answer.finish();
}

bool is_form(std::string_view content_type) {
  return http::equal_ignoring_case(content_type.substr(0, content_type.find_first_of("; ")),
                                   "multipart/form-data");
}

void write_all_of(const serve::Source& source, inside::NewFile& file) {
  for (std::string_view piece = source(); !piece.empty(); piece = source()) file.write(piece);
}

void write_form(serve::Exchange& exchange, inside::NewFile& file) {
  serve::MultipartReader reader(exchange.source(),
                                exchange.request().headers.value("Content-Type"));
  while (const auto part = reader.next_part()) {
    if (part->name != "file") continue;
    write_all_of(reader.source(), file);
    while (reader.next_part()) {  // it counts only when all of the body came
    }
    return;
  }
  fail(Code::invalid, "the form has no part 'file'");
}

}  // namespace

std::string relative_path(std::string_view path, std::string_view root) {
  if (!path.starts_with('/')) return std::string(path);
  while (root.size() > 1 && root.ends_with('/')) root.remove_suffix(1);
  const std::string_view rest = path.substr(std::min(root.size(), path.size()));
  const bool is_below = path.starts_with(root) && (rest.empty() || rest.front() == '/');
  if (root != "/" && !is_below) fail(Code::forbidden, "path '{}' is outside '{}'", path, root);
  return std::string(without_slashes(root == "/" ? path : rest));
}

void answer_get(serve::Exchange& exchange, const Root& root, const std::string& path) {
  const Place place = root.folder.locate(path);
  if (place.kind == Kind::folder) return answer_listing(exchange, root, path, place);
  if (place.kind == Kind::nothing) fail(Code::not_found, "path '{}' does not exist", path);
  const linux::Fd file = inside::open_for_reading(place);
  serve::answer_with_file(exchange, file.get(), {{"Content-Type", "application/octet-stream"}});
}

void answer_put(serve::Exchange& exchange, const Root& root, const std::string& path) {
  const http::Request& request = exchange.request();
  const unsigned mode =
      parse_mode(http::find_query_parameter(request.query, "mode").value_or("0644"));
  const Place place = root.folder.locate(path);
  if (place.kind == Kind::folder) fail(Code::invalid, "path '{}' is a directory", path);
  if (place.kind == Kind::other) fail(Code::invalid, "path '{}' is no regular file", path);
  const linux::Fd parent = root.folder.make_parent(place, root.user);
  inside::NewFile file(parent.get(), kTemporary, mode, root.user);
  if (is_form(request.headers.value("Content-Type"))) {
    write_form(exchange, file);
  } else {
    write_all_of(exchange.source(), file);
  }
  file.finish(place.names.back());
  exchange.respond({.status = 204});
}

void answer_delete(serve::Exchange& exchange, const Root& root, const std::string& path) {
  const auto recursive = http::find_query_parameter(exchange.request().query, "recursive");
  const bool with_content = recursive && parse_flag("recursive", *recursive);
  const Place place = root.folder.locate(path);
  if (place.kind == Kind::nothing) fail(Code::not_found, "path '{}' does not exist", path);
  root.folder.remove(place, with_content);
  exchange.respond({.status = 204});
}

}  // namespace hearth::sandboxd
