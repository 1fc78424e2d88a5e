// What the kinds of patches share.
#pragma once

#include <string>
#include <vector>

#include "model/json.h"

namespace hearth::patch {

// Removes members and keeps the order of the others, in linear time however many they are.
void erase_members(model::JsonObject& object, const std::vector<std::string>& names);

// 422 in the one sentence that kube-apiserver has for patches that do not fit.
[[noreturn]] void throw_patch_rejected();
// 500 without a reason, for what kube-apiserver passes on as a plain error.
[[noreturn]] void throw_plain_error(std::string message);
// "json: cannot unmarshal array into Go value of type X", as clients know it.
std::string unmarshal_error(const model::Json& value, std::string_view type);

}  // namespace hearth::patch
