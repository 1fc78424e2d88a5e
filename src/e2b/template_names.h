// Names that a team gives to its templates: "alias:tag", in an annotation of the object. Each
// belongs to one template of the team at a time; an object's own name is its for ever.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "e2b/core.h"
#include "e2b/template_reference.h"

namespace hearth::e2b {

// A name that somebody wants to give: stricter than one that he looks for. Throws Refusal: 400,
// 403 for one of another team.
TemplateReference parse_new_name(const tenants::KeyHolder& holder, std::string_view text);
// Throws Refusal(400).
void check_tag(std::string_view tag);

// What the holder may change. Throws Refusal: 404, 403 for a public one of another team.
Object get_own_template(const Core& core, const tenants::KeyHolder& holder, std::string_view text);
// Of the namespace, and not on their way out.
std::vector<Object> list_templates(const Core& core, std::string_view ns);

bool is_snapshot(const Json& sandbox_template);
// Every name of it but the object's own.
std::vector<std::string> given_names(const Json& sandbox_template);
// "NS/ALIAS:TAG" of "ALIAS:TAG".
std::string full_name(const Json& sandbox_template, std::string_view name);

// Whoever gives or takes names has it until he is done: two who move one name at once would each
// take it from the other, and leave it to nobody.
[[nodiscard]] Turns::Turn take_turn_at_names(Core& core, std::string_view ns);
// Throws Refusal(409) where a name is another object's own.
void check_free(const Core& core, std::string_view ns, std::string_view owner,
                const std::vector<std::string>& names);
// The template called `owner` has them from now on, and no other of its namespace; the cache shows
// it. Throws Refusal(400) for too many.
void give_names(Core& core, std::string_view ns, std::string_view owner,
                const std::vector<std::string>& names);
// Nobody in the namespace has them any more but `keeper`.
void take_names(Core& core, std::string_view ns, const std::vector<std::string>& names,
                std::string_view keeper = {});

// A merge patch, and the cache shows it. Throws Refusal(404) for a template that is gone. With
// `version`, Error(conflict) where it has changed since.
Json patch_template(Core& core, const Json& sandbox_template, Json patch,
                    std::string_view version = {});

}  // namespace hearth::e2b
