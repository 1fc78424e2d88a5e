// What tests of strategies share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "apiserver/strategy.h"
#include "model/json.h"

namespace hearth::apiserver {

inline Json json(std::string_view text) {
  return model::parse_json(text).value;
}

// As a create does: defaults, then what a client may not set, then defaults of that.
inline Json created(const Strategy& strategy, std::string_view text) {
  Json object = json(text);
  strategy.fill_in(object);
  strategy.prepare_create(object);
  strategy.fill_in(object);
  return object;
}

inline std::vector<std::string> sentences(const std::vector<model::FieldError>& errors) {
  std::vector<std::string> texts;
  texts.reserve(errors.size());
  for (const model::FieldError& error : errors)
    texts.push_back(fmt::format("{}: {}", error.field, error.detail));
  return texts;
}

// What a create of `text` is told.
inline std::vector<std::string> refusals(const Strategy& strategy, std::string_view text) {
  return sentences(strategy.validate(created(strategy, text), nullptr, ""));
}

// What an update from `old` to `next` is told.
inline std::vector<std::string> refusals(const Strategy& strategy, std::string_view old,
                                         std::string_view next) {
  const Json before = created(strategy, old);
  Json after = json(next);
  strategy.fill_in(after);
  strategy.prepare_update(after, before);
  return sentences(strategy.validate(after, &before, ""));
}

using Sentences = std::vector<std::string>;

}  // namespace hearth::apiserver
