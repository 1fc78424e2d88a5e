#include "inside/variables.h"

namespace hearth::inside {

std::string variable_or(const std::vector<std::string>& environment, std::string_view name,
                        std::string_view otherwise) {
  std::string_view found;
  for (const std::string_view variable : environment) {
    if (variable.substr(0, variable.find('=')) == name && variable.size() > name.size())
      found = variable.substr(name.size() + 1);
  }
  const bool is_blank = found.find_first_not_of(" \t\r\n") == std::string_view::npos;
  return std::string(is_blank ? otherwise : found);
}

}  // namespace hearth::inside
