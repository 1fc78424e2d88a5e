#include "runtimeapi/files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <optional>

#include "base/error.h"
#include "base/json_text.h"
#include "http/target.h"
#include "linux/files.h"
#include "runtimeapi/schema.h"
#include "serve/file_answer.h"
#include "serve/json_answer.h"
#include "serve/multipart.h"

namespace hearth::runtimeapi {
namespace {

using inside::Place;
using Kind = Place::Kind;

constexpr std::string_view kTemporary = ".hearth-upload-";

std::string disposition_of(const std::string& name) {
  const std::string encoded = http::percent_encode(name);
  if (encoded == name) return fmt::format("attachment; filename=\"{}\"", name);
  return fmt::format("attachment; filename*=utf-8''{}", encoded);
}

// Links in a circle lead nowhere.
Place locate_or_nothing(const Base& base, const std::string& path) {
  try {
    return base.root.locate(path);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    return {};
  }
}

// Answers with what went wrong, in this API's words; `what` stands before the rest.
void answer_failure(serve::Exchange& exchange, const Error& error, std::string_view what) {
  if (exchange.begun()) throw error;
  if (error.code() == Code::forbidden) return answer_message(exchange, 403, "Access denied");
  if (error.code() == Code::unavailable || error.code() == Code::timeout) throw error;
  answer_message(exchange, 500, fmt::format("{}: {}", what, error.what()));
}

// What a listing says of a name: of what a link leads to, if that is inside, and of the link itself
// otherwise.
std::optional<struct stat> look_at(const Base& base, const std::string& folder, const Place& place,
                                   const std::string& name) {
  struct stat status{};
  if (::fstatat(place.folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return std::nullopt;
  if (!S_ISLNK(status.st_mode)) return status;
  try {
    const Place target = base.root.locate(folder + "/" + name);
    if (target.kind != Kind::nothing) return target.status;
  } catch (const Error&) {
    // Leads outside, or nowhere.
  }
  return status;
}

std::string describe(const struct stat& status) {
  const double modified = static_cast<double>(status.st_mtim.tv_sec) +
                          static_cast<double>(status.st_mtim.tv_nsec) / 1e9;
  return fmt::format(R"("size":{},"type":"{}","mod_time":{:.7f})", status.st_size,
                     S_ISDIR(status.st_mode) ? "directory" : "file", modified);
}

// Writes the part that is being read to where its name says.
class Upload {
 public:
  Upload(const Base& base, const std::string& path) : place_(base.root.locate(path)) {
    if (place_.kind == Kind::folder) fail(Code::invalid, "[Errno 21] Is a directory: '{}'", path);
    if (place_.kind == Kind::other) fail(Code::invalid, "'{}' is no regular file", path);
    parent_ = base.root.make_parent(place_, base.user);
    // A file that is there keeps its mode.
    const unsigned mode = place_.kind == Kind::file ? place_.status.st_mode & 0777 : 0644;
    file_.emplace(parent_.get(), kTemporary, mode, base.user);
  }

  void write(std::string_view piece) { file_->write(piece); }
  void finish() { file_->finish(place_.names.back()); }

 private:
  Place place_;
  linux::Fd parent_;
  std::optional<inside::NewFile> file_;
};

// A body that is no form.
struct BadForm {};

class FormReader {
 public:
  explicit FormReader(serve::Exchange& exchange)
      : reader_(read([&] {
          return serve::MultipartReader(exchange.source(),
                                        exchange.request().headers.value("Content-Type"));
        })) {}

  auto next_part() {
    return read([&] { return reader_.next_part(); });
  }
  std::string_view read_piece() {
    return read([&] { return reader_.read_piece(); });
  }

 private:
  // What is wrong with the form is told in other words than what is wrong with a file.
  template <typename F>
  static auto read(F f) -> decltype(f()) {
    try {
      return f();
    } catch (const Error& error) {
      if (error.code() == Code::invalid) throw BadForm();
      throw;
    }
  }

  serve::MultipartReader reader_;
};

// The name of the file that was uploaded.
std::string receive_upload(serve::Exchange& exchange, const Base& base) {
  FormReader form(exchange);
  while (const auto part = form.next_part()) {
    if (part->name != "file" || !part->filename) continue;
    Upload upload(base, *part->filename);
    for (auto piece = form.read_piece(); !piece.empty(); piece = form.read_piece())
      upload.write(piece);
    while (form.next_part()) {  // it counts only when all of the body came
    }
    upload.finish();
    return *part->filename;
  }
  throw missing_field("file");
}

}  // namespace

void answer_message(serve::Exchange& exchange, unsigned status, std::string_view message) {
  exchange.respond(
      http::json_response(status, fmt::format(R"({{"message":{}}})", json_quote(message))));
}

void answer_upload(serve::Exchange& exchange, const Base& base) {
  const std::string_view type = exchange.request().headers.value("Content-Type");
  if (!http::equal_ignoring_case(type.substr(0, type.find_first_of("; ")), "multipart/form-data"))
    throw missing_field("file");
  try {
    const std::string name = receive_upload(exchange, base);
    answer_message(exchange, 200, fmt::format("File '{}' uploaded successfully.", name));
  } catch (const BadForm&) {
    exchange.abandon();
    exchange.respond(
        http::json_response(400, R"({"detail":"There was an error parsing the body"})"));
  } catch (const Error& error) {
    answer_failure(exchange, error, "File upload failed");
  }
}

void answer_download(serve::Exchange& exchange, const Base& base, const std::string& path) {
  try {
    const Place place = locate_or_nothing(base, path);
    if (place.kind != Kind::file) return answer_message(exchange, 404, "File not found");
    const linux::Fd file = inside::open_for_reading(place);
    serve::answer_with_file(exchange, file.get(),
                            {{"Content-Type", "application/octet-stream"},
                             {"Content-Disposition", disposition_of(place.names.back())}});
  } catch (const Error& error) {
    answer_failure(exchange, error, "Download failed");
  }
}

void answer_list(serve::Exchange& exchange, const Base& base, const std::string& path) {
  try {
    const Place place = locate_or_nothing(base, path);
    if (place.kind != Kind::folder) return answer_message(exchange, 404, "Path is not a directory");
    serve::JsonAnswer answer(exchange);
    std::string_view separator = "[";
    for (const std::string& name : linux::list_folder(place.folder.get())) {
      const auto status = look_at(base, path, place, name);
      if (!status) continue;  // gone by now
      answer.add(separator);
      answer.add("{\"name\":");
      answer.add_text(name);
      answer.add(",");
      answer.add(describe(*status));
      answer.add("}");
      separator = ",";
    }
    answer.add(separator == "[" ? "[]" : "]");
    answer.finish();
  } catch (const Error& error) {
    answer_failure(exchange, error, "List files failed");
  }
}

void answer_exists(serve::Exchange& exchange, const Base& base, const std::string& path) {
  try {
    const bool exists = locate_or_nothing(base, path).kind != Kind::nothing;
    exchange.respond(http::json_response(
        200, fmt::format(R"({{"path":{},"exists":{}}})", json_quote(path), exists)));
  } catch (const Error& error) {
    answer_failure(exchange, error, "Exists failed");
  }
}

}  // namespace hearth::runtimeapi
