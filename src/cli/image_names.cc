#include "cli/image_names.h"

#include <algorithm>
#include <string_view>

#include "base/time_text.h"
#include "cli/json_object.h"
#include "registry/reference.h"

namespace hearth::cli {
namespace {

constexpr std::string_view kPrefix = "sha256:";
constexpr std::size_t kShortestId = 6;
constexpr std::size_t kLongestId = 64;

std::string_view digits_of(std::string_view word) {
  if (word.starts_with(kPrefix)) word.remove_prefix(kPrefix.size());
  const bool is_hex = word.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  const bool is_id = word.size() >= kShortestId && word.size() <= kLongestId && is_hex;
  return is_id ? word : std::string_view();
}

std::string texts_json(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ",") + json_quote(text);
  return '[' + list + ']';
}

std::string to_json(const image::Config& config) {
  JsonObject labels;
  for (const auto& [name, value] : config.labels) labels.text(name, value);
  return JsonObject()
      .raw("entrypoint", texts_json(config.entrypoint))
      .raw("command", texts_json(config.command))
      .raw("environment", texts_json(config.environment))
      .text("directory", config.directory)
      .text("user", config.user)
      .raw("ports", texts_json(config.ports))
      .raw("labels", labels.str())
      .text("stop_signal", config.stop_signal)
      .str();
}

}  // namespace

std::string full_image_name(const std::string& word) {
  if (word == "host" || word.starts_with(kPrefix)) return word;
  return registry::parse_reference(word).text();
}

std::vector<image::Image> find_images(const std::vector<image::Image>& images,
                                      const std::string& word) {
  std::vector<image::Image> found;
  // A name wins: "cafe01" may be both.
  const std::string name = full_image_name(word);
  std::ranges::copy_if(images, std::back_inserter(found), [&](const image::Image& image) {
    return image.name == name || image.name == word;
  });
  const std::string_view digits = digits_of(word);
  if (!found.empty() || digits.empty()) return found;
  std::ranges::copy_if(images, std::back_inserter(found), [&](const image::Image& image) {
    return digits_of(image.id).starts_with(digits);
  });
  return found;
}

std::string to_json(const image::Image& image) {
  return JsonObject()
      .text("name", image.name)
      .text("id", image.id)
      .text("architecture", image.architecture)
      .text("created", format_rfc3339(image.created))
      .number("bytes", image.bytes)
      .raw("layers", texts_json(image.layers))
      .raw("config", to_json(image.config))
      .str();
}

}  // namespace hearth::cli
