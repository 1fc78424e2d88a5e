// Snapshots: a SandboxTemplate that starts from the files of a sandbox.
//
// POST /sandboxes/{id}/snapshots and GET /snapshots; they are deleted as templates are.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "client/kinds.h"
#include "controllers/blueprint.h"
#include "e2b/answers.h"
#include "e2b/kept_images.h"
#include "e2b/page.h"
#include "e2b/routes.h"
#include "e2b/state.h"
#include "e2b/template_names.h"
#include "e2b/view.h"
#include "e2b/words.h"
#include "model/template_ref.h"

namespace hearth::e2b {
namespace {

// Each has files on the disk; a loop that makes them should end before the disk does.
constexpr std::size_t kMostSnapshots = 1000;
// What a template has besides what Sandboxes have of it.
constexpr std::string_view kTemplateFields[] = {"networkPolicy", "networkPolicyManagement"};

std::vector<Object> list_snapshots(const Core& core, std::string_view ns) {
  std::vector<Object> all = list_templates(core, ns);
  std::erase_if(all, [](const Object& each) { return !is_snapshot(*each); });
  return all;
}

JsonObject snapshot_answer(const Json& snapshot) {
  model::JsonArray names;
  for (const std::string& each : given_names(snapshot))
    names.emplace_back(full_name(snapshot, each));
  const Json id = names.empty() ? Json(fmt::format("{}:{}", template_id(snapshot), kDefaultTag))
                                : names.front();
  return {{"snapshotID", id}, {"names", std::move(names)}};
}

// `id` is that of a sandbox, which a template's could be taken for.
std::string new_snapshot_id() {
  std::string id = new_sandbox_id();
  id.front() = 's';
  return id;
}

// What it was made of, if that is there and still its team's to use.
Object find_origin(const Core& core, const Call& call, const Json& sandbox) {
  const std::string origin = origin_of(sandbox);
  const auto slash = origin.find('/');
  if (slash == origin.npos)
    return find_template(core, call.holder, parse_template_reference(origin));
  Object found = core.templates.find(origin.substr(0, slash), origin.substr(slash + 1));
  const bool is_usable = found && !model::is_deleting(*found) &&
                         model::is_usable_from(model::namespace_of(sandbox), *found);
  return is_usable ? found : nullptr;
}

Json snapshot_of(const Core& core, const Call& call, const KeptFiles& kept) {
  const Json& sandbox = *kept.sandbox;
  Json spec = spec_from_image(sandbox, *kept.pod, kept.image.name());
  const Object origin = find_origin(core, call, sandbox);
  if (origin)
    for (const std::string_view field : kTemplateFields)
      if (const Json* value = model::find(*origin, {"spec", field}))
        spec.get_object()[field] = *value;
  // A Sandbox bears the rules of its template, and with them what its client said.
  JsonObject annotations = controllers::access_rules_of(origin ? *origin : sandbox);
  annotations[kMadeAnnotation] = time_text(core.now());
  return JsonObject{
      {"apiVersion", client::kSandboxTemplates.api_version()},
      {"kind", "SandboxTemplate"},
      {"metadata", JsonObject{{"name", new_snapshot_id()},
                              {"namespace", call.holder.ns},
                              {"labels", JsonObject{{kSnapshotLabel, model::name_of(sandbox)}}},
                              {"annotations", std::move(annotations)}}},
      {"spec", std::move(spec)}};
}

Json create_template(Core& core, const Json& wanted) {
  Json made = core.parts.client.create(client::kSandboxTemplates, wanted);
  core.template_waits.until(model::key_of(made), has_version_of(made),
                            core.options.settle_patience);
  return made;
}

http::Response create(Core& core, KeptImages& images, const Call& call) {
  const auto text = call.body().text("name");
  std::vector<std::string> names;
  if (text && !text->empty()) names.push_back(parse_new_name(call.holder, *text).full_name());
  const std::string& ns = call.holder.ns;
  call.sandbox(core);
  check_free(core, ns, {}, names);
  if (list_snapshots(core, ns).size() >= kMostSnapshots)
    throw Refusal(
        429,
        fmt::format("your team has {} snapshots, which is the most; delete one", kMostSnapshots),
        not_again());
  const KeptFiles kept = keep_files(core, images, call);
  Json wanted = snapshot_of(core, call, kept);
  if (names.empty()) return answer_json(201, snapshot_answer(create_template(core, wanted)));
  model::make_object_at(wanted, {"metadata", "annotations"})[kTemplateNamesAnnotation] =
      names.front();
  const auto turn = take_turn_at_names(core, ns);
  const Json made = create_template(core, wanted);
  take_names(core, ns, names, model::name_of(made));
  return answer_json(201, snapshot_answer(made));
}

// Whether one of its names is the one that is looked for; without a tag, any of that alias.
bool has_name(const Json& snapshot, const TemplateReference& wanted, bool has_tag) {
  if (!wanted.ns.empty() && wanted.ns != model::namespace_of(snapshot)) return false;
  return std::ranges::any_of(template_names(snapshot), [&](const std::string& each) {
    return has_tag ? each == wanted.full_name() : each.starts_with(wanted.alias + ":");
  });
}

http::Response list(Core& core, const Call& call) {
  const PageQuery query = parse_page_query(call);
  std::vector<Object> all = list_snapshots(core, call.holder.ns);
  if (const auto text = call.query("sandboxID"); text && !text->empty()) {
    const std::string id = parse_sandbox_id(*text);
    std::erase_if(all,
                  [&](const Object& each) { return model::label_of(*each, kSnapshotLabel) != id; });
  }
  if (const auto text = call.query("name"); text && !text->empty()) {
    const TemplateReference wanted = parse_template_reference(*text);
    const bool has_tag = text->find(':') != std::string::npos;
    std::erase_if(all, [&](const Object& each) { return !has_name(*each, wanted, has_tag); });
  }
  const Page page = take_page(std::move(all), query);
  model::JsonArray entries;
  for (const Object& each : page.objects) entries.push_back(snapshot_answer(*each));
  http::Response response = answer_json(200, std::move(entries));
  if (!page.next.empty()) response.headers.set("X-Next-Token", page.next);
  return response;
}

}  // namespace

void add_snapshot_routes(Routes& routes, Core& core, KeptImages& images) {
  routes.add("POST", "/sandboxes/{id}/snapshots",
             [&core, &images](const Call& call) { return create(core, images, call); });
  routes.add("GET", "/snapshots", [&core](const Call& call) { return list(core, call); });
}

}  // namespace hearth::e2b
