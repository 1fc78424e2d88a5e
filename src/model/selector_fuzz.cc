// What parses is written in a form that parses again, to the same thing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/selector.h"
#include "model/status.h"

namespace {

using hearth::model::FieldSelector;
using hearth::model::Labels;
using hearth::model::LabelSelector;

void check(bool holds) {
  if (!holds) std::abort();
}

template <typename Selector>
void round_trip(std::string_view text) {
  static const Labels kLabels = {{"a", "b"}, {"app", "web"}, {"n", "7"}};
  try {
    const Selector selector = Selector::parse(text);
    const Selector again = Selector::parse(selector.text());
    check(again.text() == selector.text());
    check(again.matches(kLabels) == selector.matches(kLabels));
    check(again.matches({}) == selector.matches({}));
  } catch (const hearth::model::StatusError& error) {
    check(error.status().code == 400);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  round_trip<LabelSelector>(text);
  round_trip<FieldSelector>(text);
  return 0;
}
