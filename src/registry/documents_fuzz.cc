// JSON of strangers: manifests, configurations, tokens, and the files that people keep secrets in.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "registry/authorization.h"
#include "registry/credential_helper.h"
#include "registry/credentials.h"
#include "registry/manifest.h"

using namespace hearth;

namespace {

void read_document(std::string_view text) {
  const registry::Document document = registry::parse_document(text, "");
  if (const auto* index = std::get_if<registry::Index>(&document)) {
    HEARTH_ASSERT(image::is_digest(registry::choose(*index, registry::this_platform()).digest));
    return;
  }
  for (const auto& layer : std::get<registry::Manifest>(document).layers) {
    HEARTH_ASSERT(image::is_digest(layer.digest));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 5) {
      case 0:
        read_document(text);
        break;
      case 1: {
        const auto config = registry::parse_image_config(text);
        registry::check_image({.layers = {{}}}, config, registry::this_platform());
        break;
      }
      case 2:
        registry::parse_docker_config(text);
        break;
      case 3:
        HEARTH_ASSERT(!registry::parse_token(text).empty());
        break;
      default:
        registry::parse_helper_answer(text);
    }
  } catch (const Error& error) {
    HEARTH_ASSERT(error.code() == Code::invalid || error.code() == Code::not_found);
  }
  return 0;
}
