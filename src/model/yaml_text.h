// JSON written as YAML, for clients that ask for application/yaml.
#pragma once

#include <string>

#include "model/json.h"

namespace hearth::model {

// Block style, members sorted as kube-apiserver has them, a newline at the end. Text that a reader
// might take for something else is quoted.
std::string to_yaml(const Json& value);

}  // namespace hearth::model
