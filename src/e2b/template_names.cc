#include "e2b/template_names.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "client/kinds.h"
#include "e2b/answers.h"
#include "e2b/state.h"
#include "e2b/words.h"
#include "model/status.h"

namespace hearth::e2b {
namespace {

constexpr std::size_t kMostNameBytes = 128;
// All are in one annotation.
constexpr std::size_t kMostNames = 100;
// Others that name templates of the same team at the same moment.
constexpr int kMostTries = 10;

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (is_hyphen ? text[i] != '-'
                  : std::string_view("0123456789abcdef").find(text[i]) == text.npos)
      return false;
  }
  return true;
}

std::string own_name(const Json& sandbox_template) {
  return fmt::format("{}:{}", model::name_of(sandbox_template), kDefaultTag);
}

void edit_names(Core& core, std::string_view ns, std::string_view owner,
                const std::function<void(std::vector<std::string>& names)>& edit) {
  for (int i = 0;; ++i) {
    const auto now = core.parts.client.find(client::kSandboxTemplates, ns, owner);
    if (!now) refuse(404, "template '{}' not found", owner);
    const std::vector<std::string> before = given_names(*now);
    std::vector<std::string> names = before;
    edit(names);
    if (names == before) return;
    if (names.size() > kMostNames)
      refuse(400, "template '{}' would have {} names; {} are the most", owner, names.size(),
             kMostNames);
    const Json value =
        names.empty() ? Json(nullptr) : Json(fmt::format("{}", fmt::join(names, ",")));
    const Json patch = JsonObject{
        {"metadata", JsonObject{{"annotations", JsonObject{{kTemplateNamesAnnotation, value}}}}}};
    try {
      patch_template(core, *now, patch, model::resource_version_of(*now));
      return;
    } catch (const model::StatusError& error) {
      if (error.status().code != 409 || i == kMostTries) throw;
    }
  }
}

bool has_any(const std::vector<std::string>& all, const std::vector<std::string>& some) {
  return std::ranges::any_of(
      some, [&](const std::string& each) { return std::ranges::find(all, each) != all.end(); });
}

}  // namespace

void check_tag(std::string_view tag) {
  if (tag.size() > kMostNameBytes || is_uuid(tag))
    refuse(400, "'{}' is no tag: it is too long, or a UUID", tag);
}

TemplateReference parse_new_name(const tenants::KeyHolder& holder, std::string_view text) {
  TemplateReference name = parse_template_reference(text);
  if (name.alias.find('.') != std::string::npos || name.alias.size() > kMostNameBytes)
    refuse(400, "'{}' is no name of a template: letters, digits, '-' and '_', up to {}", text,
           kMostNameBytes);
  check_tag(name.tag);
  if (!name.ns.empty() && name.ns != holder.ns)
    refuse(403, "the name '{}' belongs to another team", text);
  return name;
}

Object get_own_template(const Core& core, const tenants::KeyHolder& holder, std::string_view text) {
  Object found = get_template(core, holder, text);
  if (model::namespace_of(*found) != holder.ns)
    refuse(403, "template '{}' belongs to another team", text);
  return found;
}

std::vector<Object> list_templates(const Core& core, std::string_view ns) {
  std::vector<Object> all = core.templates.list(ns);
  std::erase_if(all, [](const Object& each) { return model::is_deleting(*each); });
  return all;
}

bool is_snapshot(const Json& sandbox_template) {
  return !model::label_of(sandbox_template, kSnapshotLabel).empty();
}

std::vector<std::string> given_names(const Json& sandbox_template) {
  std::vector<std::string> names = template_names(sandbox_template);
  std::erase(names, own_name(sandbox_template));
  return names;
}

std::string full_name(const Json& sandbox_template, std::string_view name) {
  return fmt::format("{}/{}", model::namespace_of(sandbox_template), name);
}

Turns::Turn take_turn_at_names(Core& core, std::string_view ns) {
  return core.turns.take({std::string(ns), "names of templates"});  // no sandbox is called that
}

void check_free(const Core& core, std::string_view ns, std::string_view owner,
                const std::vector<std::string>& names) {
  for (const Object& each : list_templates(core, ns))
    if (model::name_of(*each) != owner && has_any(names, {own_name(*each)}))
      refuse(409, "'{}' is the name of another template itself; delete that one first",
             own_name(*each));
}

void give_names(Core& core, std::string_view ns, std::string_view owner,
                const std::vector<std::string>& names) {
  check_free(core, ns, owner, names);
  edit_names(core, ns, owner, [&](std::vector<std::string>& all) {
    for (const std::string& each : names)
      if (std::ranges::find(all, each) == all.end() &&
          each != fmt::format("{}:{}", owner, kDefaultTag))
        all.push_back(each);
  });
  // After that: there is no moment at which a name is nobody's.
  take_names(core, ns, names, owner);
}

void take_names(Core& core, std::string_view ns, const std::vector<std::string>& names,
                std::string_view keeper) {
  for (const Object& each : list_templates(core, ns)) {
    if (model::name_of(*each) == keeper || !has_any(given_names(*each), names)) continue;
    try {
      edit_names(core, ns, model::name_of(*each), [&](std::vector<std::string>& all) {
        std::erase_if(all, [&](const std::string& name) { return has_any(names, {name}); });
      });
    } catch (const Refusal& refusal) {
      // Gone meanwhile, and its names with it.
      if (refusal.status() != 404) throw;
    }
  }
}

Json patch_template(Core& core, const Json& sandbox_template, Json patch,
                    std::string_view version) {
  const model::Key key = model::key_of(sandbox_template);
  JsonObject& metadata = model::make_object_at(patch, {"metadata"});
  metadata["uid"] = model::uid_of(sandbox_template);
  if (!version.empty()) metadata["resourceVersion"] = version;
  Json written;
  try {
    written = core.parts.client.patch(client::kSandboxTemplates, key.ns, key.name,
                                      client::PatchKind::merge, patch);
  } catch (const model::StatusError& error) {
    if (error.status().code == 404) refuse(404, "template '{}' not found", key.name);
    throw;
  }
  core.template_waits.until(key, has_version_of(written), core.options.settle_patience);
  return written;
}

}  // namespace hearth::e2b
