#include "e2b/template_reference.h"

#include <algorithm>
#include <cctype>

#include "e2b/answers.h"
#include "e2b/state.h"
#include "e2b/words.h"
#include "model/template_ref.h"

namespace hearth::e2b {
namespace {

constexpr std::string_view kByName = "e2b-name";
// Longer ones are nobody's; names of objects end at 253.
constexpr std::size_t kMostBytes = 512;

bool is_word(std::string_view text, std::string_view more) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || more.find(c) != more.npos;
  });
}

// A bare name means the team's own template, or a public one of the default team. Other teams'
// public ones have to be named with their team: nobody can put himself in the place of `base`.
bool is_meant(const Json& each, const tenants::KeyHolder& holder,
              const TemplateReference& reference) {
  if (model::is_deleting(each)) return false;
  const std::string_view ns = model::namespace_of(each);
  if (!reference.ns.empty() && ns != reference.ns) return false;
  if (ns == holder.ns) return true;
  return is_public(each) && (!reference.ns.empty() || ns == tenants::kDefaultTeam);
}

}  // namespace

TemplateReference parse_template_reference(std::string_view text) {
  if (text.size() > kMostBytes) refuse(400, "the template reference has {} bytes", text.size());
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  TemplateReference reference;
  std::string_view rest = lower;
  if (const auto slash = rest.find('/'); slash != rest.npos) {
    reference.ns = rest.substr(0, slash);
    rest.remove_prefix(slash + 1);
    if (!is_word(reference.ns, "-_"))
      refuse(400, "the template reference '{}' has a bad team before its slash", text);
  }
  if (const auto colon = rest.find(':'); colon != rest.npos) {
    reference.tag = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    if (!is_word(reference.tag, "-_."))
      refuse(400, "the template reference '{}' has a bad tag", text);
  }
  // Dots are in no alias of E2B's; objects may have them.
  if (!is_word(rest, "-_.")) refuse(400, "'{}' is no template reference", text);
  reference.alias = rest;
  return reference;
}

std::vector<std::string> template_names(const Json& sandbox_template) {
  std::vector<std::string> names{std::string(model::name_of(sandbox_template)) + ":" +
                                 std::string(kDefaultTag)};
  for (std::string& each :
       split_list(model::annotation_of(sandbox_template, kTemplateNamesAnnotation))) {
    if (each.find(':') == std::string::npos) each += ":" + std::string(kDefaultTag);
    names.push_back(std::move(each));
  }
  return names;
}

std::string_view template_id(const Json& sandbox_template) {
  return model::name_of(sandbox_template);
}

bool is_public(const Json& sandbox_template) {
  return model::is_public_template(sandbox_template);
}

void index_templates(client::WatchCache& templates) {
  templates.add_index(std::string(kByName), template_names);
}

Object find_template(const Core& core, const tenants::KeyHolder& holder,
                     const TemplateReference& reference) {
  std::vector<Object> all = core.templates.find_by_index(kByName, reference.full_name());
  std::erase_if(all, [&](const Object& each) { return !is_meant(*each, holder, reference); });
  if (all.empty()) return nullptr;
  const auto own = std::ranges::find_if(
      all, [&](const Object& each) { return model::namespace_of(*each) == holder.ns; });
  return own == all.end() ? all.front() : *own;
}

Object get_template(const Core& core, const tenants::KeyHolder& holder, std::string_view text) {
  Object found = find_template(core, holder, parse_template_reference(text));
  if (!found) refuse(404, "template '{}' not found", text);
  return found;
}

bool is_foreign_template(const Core& core, const tenants::KeyHolder& holder,
                         const TemplateReference& reference) {
  return std::ranges::any_of(
      core.templates.find_by_index(kByName, reference.full_name()), [&](const Object& each) {
        return !is_meant(*each, holder, reference) && !model::is_deleting(*each) &&
               (reference.ns.empty() || model::namespace_of(*each) == reference.ns);
      });
}

}  // namespace hearth::e2b
