// Which template a client means: a name, an alias, `team/alias`, each with `:tag` or without, or
// the id of a snapshot, which is one of these.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "e2b/core.h"

namespace hearth::e2b {

inline constexpr std::string_view kDefaultTag = "default";

struct TemplateReference {
  // As written before the slash; empty: the team's own, else a public one of the default team.
  std::string ns;
  std::string alias;
  std::string tag = std::string(kDefaultTag);

  // "alias:tag"
  std::string full_name() const { return alias + ":" + tag; }
};

// Lower-cased. Throws Refusal(400) for what can be none.
TemplateReference parse_template_reference(std::string_view text);

// Every name of a SandboxTemplate as "alias:tag": its object's own, and those of its annotation.
std::vector<std::string> template_names(const Json& sandbox_template);
// The first one's alias: what clients see as its id.
std::string_view template_id(const Json& sandbox_template);
bool is_public(const Json& sandbox_template);

// Before the caches start: templates are found by their names.
void index_templates(client::WatchCache& templates);

// What the holder may use: the team's own before a public one. Null for none.
Object find_template(const Core& core, const tenants::KeyHolder& holder,
                     const TemplateReference& reference);
// Throws Refusal(400, 404).
Object get_template(const Core& core, const tenants::KeyHolder& holder, std::string_view text);
// Whether somebody has one of that name, whom the holder has nothing to do with.
bool is_foreign_template(const Core& core, const tenants::KeyHolder& holder,
                         const TemplateReference& reference);

}  // namespace hearth::e2b
