#include <cstdio>

#include "cli/command.h"
#include "cli/json_object.h"
#include "cli/sandbox_text.h"
#include "cli/verbs.h"
#include "runtime/client.h"

namespace hearth::cli {

int inspect(const InspectOptions& options) {
  runtime::RuntimeClient client(options.state_dir);
  std::vector<std::string> elements;
  int exit_code = 0;
  for (const std::string& id : options.ids) {
    try {
      elements.push_back(to_json(client.get(id)));
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
      complain("inspect", error.what());
      exit_code = kExitFailure;
    }
  }
  std::fputs(json_array(elements).c_str(), stdout);
  return exit_code;
}

}  // namespace hearth::cli
