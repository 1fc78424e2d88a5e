// The columns of an EndpointSlice: what it leads to, as far as it fits into a line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apiserver/builtin_columns.h"
#include "model/meta.h"

namespace hearth::apiserver {
namespace {

using model::text_at;

constexpr std::size_t kMostShown = 3;

// "a,b,c + 2 more..."
std::string shortened(const std::vector<std::string>& all, std::string_view none) {
  if (all.empty()) return std::string(none);
  const std::size_t shown = std::min(all.size(), kMostShown);
  std::string text =
      fmt::format("{}", fmt::join(all.begin(), all.begin() + static_cast<long>(shown), ","));
  if (all.size() > shown) text += fmt::format(" + {} more...", all.size() - shown);
  return text;
}

// A port without a number is every port; one without a name goes by its number.
std::string ports_of(const Json& slice) {
  std::vector<std::string> ports;
  if (const auto* all = model::array_at(slice, {"ports"}))
    for (const Json& port : *all) {
      const auto number = model::number_at(port, {"port"});
      std::string text(text_at(port, {"name"}));
      if (number) text = std::to_string(*number);
      ports.push_back(text.empty() ? "*" : text);
    }
  return shortened(ports, "<unset>");
}

std::string addresses_of(const Json& slice) {
  std::vector<std::string> addresses;
  if (const auto* endpoints = model::array_at(slice, {"endpoints"}))
    for (const Json& endpoint : *endpoints)
      if (const auto* all = model::array_at(endpoint, {"addresses"}))
        for (const Json& address : *all)
          if (address.is_string()) addresses.emplace_back(std::string_view(address.get_string()));
  return shortened(addresses, "<unset>");
}

}  // namespace

void endpoint_slice_cells(const Json& slice, Time now, model::JsonArray& cells) {
  cells = {model::name_of(slice), text_at(slice, {"addressType"}), ports_of(slice),
           addresses_of(slice), object_age(slice, now)};
}

}  // namespace hearth::apiserver
