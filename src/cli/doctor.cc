#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "cli/checks.h"
#include "cli/json_object.h"
#include "cli/verbs.h"

namespace hearth::cli {
namespace {

std::string to_json(const Check& check) {
  return JsonObject()
      .text("name", check.name)
      .text("status", to_string(check.health))
      .boolean("essential", check.essential)
      .text("found", check.found)
      .text("lost", check.lost)
      .text("fix", check.fix)
      .str();
}

bool wants_colour() {
  const char* refused = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) != 0 && (refused == nullptr || *refused == '\0');
}

const char* colour_of(const Check& check) {
  if (check.health == Health::ok) return "\033[32m";
  return check.essential ? "\033[31m" : "\033[33m";
}

void print(const Check& check, bool colour) {
  const std::string_view status = to_string(check.health);
  const std::string padding(10 - status.size(), ' ');
  std::fputs(fmt::format("{}{}{}{}{:<31}{}\n", colour ? colour_of(check) : "", status,
                         colour ? "\033[0m" : "", padding, check.name, check.found)
                 .c_str(),
             stdout);
  if (check.health == Health::ok) return;
  std::fputs(
      fmt::format("{:12}without it: {}\n{:12}fix:        {}\n", "", check.lost, "", check.fix)
          .c_str(),
      stdout);
}

}  // namespace

int doctor(const DoctorOptions& options) {
  std::vector<Check> checks = check_machine(options.state_dir);
  for (auto&& more : {check_kernel(), check_cgroups(), check_network()})
    checks.insert(checks.end(), more.begin(), more.end());
  const auto stops = [](const Check& check) {
    return check.essential && check.health == Health::missing;
  };
  const auto stoppers = std::ranges::count_if(checks, stops);

  if (options.format == Format::json) {
    std::vector<std::string> elements;
    for (const Check& check : checks) elements.push_back(to_json(check));
    std::fputs(json_array(elements).c_str(), stdout);
  } else {
    const bool colour = wants_colour();
    for (const Check& check : checks) print(check, colour);
    std::puts(stoppers == 0
                  ? "\nThis machine can run sandboxes."
                  : fmt::format(
                        "\nThis machine cannot run sandboxes yet: {} essential things are missing.",
                        stoppers)
                        .c_str());
  }
  return stoppers == 0 ? 0 : kExitFailure;
}

}  // namespace hearth::cli
