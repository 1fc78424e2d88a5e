// Sandboxes as clients of E2B see them. Pure, but for the tokens and the settings of the Core.
#pragma once

#include <cstdint>
#include <string>

#include "e2b/body.h"
#include "e2b/core.h"

namespace hearth::e2b {

// Any text: clients no longer use it.
inline constexpr std::string_view kClientId = "hearth";

struct Size {
  std::int64_t cpu_count = 0;
  std::int64_t memory_mib = 0;
  std::int64_t disk_mib = 0;
  // What limits are compared with; 0: the template sets none.
  std::int64_t cpu_millis = 0;
};
// From the limits of the first container of spec.podTemplate: of a Sandbox or a SandboxTemplate.
Size size_of(const Core& core, const Json& object);

Texts metadata_of(const Json& sandbox);
// The template's name, as it was asked for.
std::string template_id_of(const Json& sandbox);
// Which SandboxTemplate that is: NS/NAME; a bare name on Sandboxes that older engines made.
std::string origin_of(const Json& sandbox);
bool is_made_of(const Json& sandbox, const Json& sandbox_template);

// The answer to create, connect, resume and fork.
JsonObject sandbox_answer(const Core& core, const Json& sandbox);
// An entry of a list.
JsonObject listed_sandbox(const Core& core, const Json& sandbox);
// GET /sandboxes/{id}.
JsonObject sandbox_detail(const Core& core, const Json& sandbox);

}  // namespace hearth::e2b
