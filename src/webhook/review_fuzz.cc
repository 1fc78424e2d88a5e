// Conversion reviews: whatever comes is refused as invalid, or answered with the review's own uid
// and either no object and a sentence, or every object in its place: the same kind, the wanted
// version, and the same metadata but for annotations.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "model/json.h"
#include "webhook/review.h"

namespace hearth::webhook {
namespace {

using model::Json;

void check(bool holds) {
  if (!holds) std::abort();
}

Json metadata_of(const Json& object) {
  Json metadata = *model::find(object, {"metadata"});
  model::erase_at(metadata, {"annotations"});
  return metadata;
}

void check_converted(const Json& given, const Json& converted, std::string_view wanted) {
  check(model::text_at(converted, {"apiVersion"}) == wanted);
  check(model::text_at(converted, {"kind"}) == model::text_at(given, {"kind"}));
  check(model::is_same(metadata_of(given), metadata_of(converted)));
}

void check_answer(std::string_view text) {
  const Json answer = model::parse_json(answer_review(text)).value;
  const Json given = model::parse_json(text).value;
  check(model::text_at(answer, {"response", "uid"}) == model::text_at(given, {"request", "uid"}));
  const model::JsonArray* converted = model::array_at(answer, {"response", "convertedObjects"});
  if (model::text_at(answer, {"response", "result", "status"}) == "Failed") {
    check(converted->empty());
    check(!model::text_at(answer, {"response", "result", "message"}).empty());
    return;
  }
  const model::JsonArray* objects = model::array_at(given, {"request", "objects"});
  check(converted->size() == objects->size());
  for (std::size_t i = 0; i < objects->size(); ++i)
    check_converted((*objects)[i], (*converted)[i],
                    model::text_at(given, {"request", "desiredAPIVersion"}));
}

}  // namespace
}  // namespace hearth::webhook

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    hearth::webhook::check_answer(text);
  } catch (const hearth::Error& error) {
    if (error.code() != hearth::Code::invalid) std::abort();
  }
  return 0;
}
