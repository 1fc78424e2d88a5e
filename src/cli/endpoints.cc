#include "cli/endpoints.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include <boost/json.hpp>

#include "base/error.h"
#include "cli/json_object.h"
#include "linux/fd.h"
#include "linux/files.h"

namespace hearth::cli {
namespace {

struct Part {
  const char* name;
  std::string Endpoints::* url;
};
constexpr std::array<Part, 4> kParts = {{{.name = "kube", .url = &Endpoints::kube},
                                         {.name = "api", .url = &Endpoints::api},
                                         {.name = "e2b", .url = &Endpoints::e2b},
                                         {.name = "metrics", .url = &Endpoints::metrics}}};

linux::Fd open_engine_folder(const std::string& state_dir) {
  return linux::open_file(state_dir + '/' + kEngineFolder, O_PATH | O_DIRECTORY | O_NOFOLLOW);
}

}  // namespace

std::string to_json(const Endpoints& endpoints) {
  JsonObject object;
  for (const Part& part : kParts) {
    if (!(endpoints.*part.url).empty()) object.text(part.name, endpoints.*part.url);
  }
  return object.str() + '\n';
}

Endpoints parse_endpoints(std::string_view json) {
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse({json.data(), json.size()}, error);
  if (error || !value.is_object()) fail(Code::invalid, "{} is not a JSON object", kEndpointsFile);
  Endpoints endpoints;
  for (const Part& part : kParts) {
    const boost::json::value* url = value.as_object().if_contains(part.name);
    if (url == nullptr) continue;
    if (!url->is_string()) fail(Code::invalid, "{}: '{}' is no text", kEndpointsFile, part.name);
    endpoints.*part.url = url->as_string().c_str();
  }
  return endpoints;
}

std::string describe(const Endpoints& endpoints) {
  std::string text;
  for (const Part& part : kParts) {
    const std::string& url = endpoints.*part.url;
    if (!url.empty()) text += fmt::format("{}{}={}", text.empty() ? "" : " ", part.name, url);
  }
  return text;
}

void write_endpoints(const std::string& state_dir, const Endpoints& endpoints) {
  linux::replace_file_at(open_engine_folder(state_dir).get(), kEndpointsFile, to_json(endpoints));
}

void remove_endpoints(const std::string& state_dir) {
  linux::remove_all_at(open_engine_folder(state_dir).get(), kEndpointsFile);
}

std::optional<Endpoints> find_endpoints(const std::string& state_dir) {
  try {
    // Not through links: the folder is the engine user's, and root reads it too.
    const linux::Fd folder = open_engine_folder(state_dir);
    const linux::Fd file =
        linux::open_at(folder.get(), kEndpointsFile, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    struct stat status{};
    if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    return parse_endpoints(linux::read_file(fmt::format("/proc/self/fd/{}", file.get())));
  } catch (const Error& error) {
    if (error.code() == Code::not_found || error.code() == Code::forbidden) return std::nullopt;
    throw;
  }
}

}  // namespace hearth::cli
