#include "controllers/claim_source.h"

#include <fmt/format.h>

#include "base/json_text.h"
#include "client/kinds.h"
#include "controllers/claim_problem.h"
#include "controllers/pool_index.h"
#include "model/template_ref.h"

namespace hearth::controllers {
namespace {

using client::Object;
using model::text_at;

// A pool's may be another namespace's (model/template_ref.h), if that lets others use it.
Object if_usable(std::string_view ns, Object sandbox_template) {
  if (sandbox_template && !model::is_usable_from(ns, *sandbox_template)) return nullptr;
  return sandbox_template;
}

// Of a claim whose pool is none: the template that it names itself, or by the name of that pool.
std::string_view direct_template_of(const Json& claim) {
  const std::string_view pool_name = pool_name_of(claim);
  return pool_name.empty() ? text_at(claim, {"spec", "sandboxTemplateRef", "name"})
                           : shadowed_template(pool_name);
}

}  // namespace

std::string_view pool_name_of(const Json& claim) {
  return text_at(claim, {"spec", "warmPoolRef", "name"});
}

std::string_view shadowed_template(std::string_view pool_name) {
  constexpr std::string_view kShadow = "shadow-pool-";
  return pool_name.starts_with(kShadow) ? pool_name.substr(kShadow.size()) : std::string_view();
}

void throw_no_template(std::string_view name) {
  throw ClaimProblem("TemplateNotFound",
                     fmt::format("SandboxTemplate {} not found", json_quote(name)),
                     Retry::each_minute);
}

Object ClaimSources::get(client::WatchCache& cache, const client::ResourceId& kind,
                         const model::Key& key) {
  if (key.name.empty()) return nullptr;
  if (Object found = cache.find(key.ns, key.name)) return found;
  auto read = client_.find(kind, key.ns, key.name);
  return read ? std::make_shared<const Json>(std::move(*read)) : nullptr;
}

std::vector<Object> ClaimSources::pools_in(std::string_view ns,
                                           const model::Key& sandbox_template) const {
  std::vector<Object> all = pools_of_template(pools_, sandbox_template);
  std::erase_if(all, [&](const Object& pool) {
    return model::namespace_of(*pool) != ns || model::is_deleting(*pool);
  });
  return all;
}

ClaimSource ClaimSources::source_of(const Json& claim) {
  const std::string ns(model::namespace_of(claim));
  const std::string pool_name(pool_name_of(claim));
  ClaimSource source;
  Object pool = get(pools_, client::kSandboxWarmPools, {ns, pool_name});
  if (pool) {
    source.template_name = model::template_ref_of(*pool);
    source.pools.push_back(std::move(pool));
  } else {
    source.template_name = direct_template_of(claim);
  }
  const model::Key template_key = model::template_key(ns, source.template_name);
  source.sandbox_template = if_usable(ns, get(templates_, client::kSandboxTemplates, template_key));
  if (!source.pools.empty()) return source;
  if (!source.sandbox_template && !pool_name.empty())
    throw ClaimProblem("WarmPoolNotFound",
                       fmt::format("SandboxWarmPool {} not found", json_quote(pool_name)),
                       Retry::each_minute);
  source.pools = pools_in(ns, template_key);
  return source;
}

Object ClaimSources::cached_pool_of(const Json& claim) const {
  const std::string_view name = pool_name_of(claim);
  return name.empty() ? nullptr : pools_.find(model::namespace_of(claim), name);
}

Object ClaimSources::cached_template_of(const Json& claim) const {
  const std::string_view ns = model::namespace_of(claim);
  if (const Object pool = cached_pool_of(claim)) {
    const model::Key key = model::template_key_of(*pool);
    return if_usable(ns, templates_.find(key.ns, key.name));
  }
  const std::string_view direct = direct_template_of(claim);
  return direct.empty() ? nullptr : templates_.find(ns, direct);
}

}  // namespace hearth::controllers
