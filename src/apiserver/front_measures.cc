// Reads of metrics.k8s.io: answered by who measures, for objects that are here.
#include <fmt/format.h>

#include "apiserver/front.h"
#include "apiserver/kept.h"
#include "apiserver/usage_metrics.h"

namespace hearth::apiserver {

http::Response Front::measure(const Call& call) const {
  const bool is_read = call.request.method == "GET" || call.request.method == "HEAD";
  if (!is_read || call.is_watch || !call.path->subresource.empty())
    model::throw_method_not_allowed();
  const Selection selection = selection_of(call);
  const remote::UsageReport report = parts_.measure();
  const bool of_pods = call.resource->plural == "pods";
  const ResourcePtr measured = call.catalogue->find("", "v1", call.resource->plural);
  const auto metrics_of = [&](const store::Object& object) {
    const Json now = view(object, *measured);
    return of_pods ? pod_metrics(now, report) : node_metrics(now, report);
  };

  const std::string& name = call.path->name;
  if (!name.empty()) {
    const std::string ns = call.path->ns.value_or("");
    const store::ObjectPtr object = parts_.store.find({measured->store_name, ns, name});
    const auto metrics = object ? metrics_of(*object) : std::nullopt;
    if (!metrics)
      model::throw_not_found({std::string(kMetricsGroup), of_pods ? "podmetrics" : "nodemetrics"},
                             of_pods ? fmt::format("{}/{}", ns, name) : name);
    return render_object(call, 200, model::to_text(*metrics));
  }
  store::ListQuery query;
  query.resource = measured->store_name;
  query.ns = selection.ns;
  model::JsonArray items;
  for (const store::ObjectPtr& object : parts_.store.list(query).objects)
    if (selection.matches(*object, *measured))
      if (auto metrics = metrics_of(*object)) items.push_back(std::move(*metrics));
  const Json list = model::JsonObject{{"kind", call.resource->list_kind},
                                      {"apiVersion", call.resource->api_version()},
                                      {"metadata", model::JsonObject()},
                                      {"items", std::move(items)}};
  return render_object(call, 200, model::to_text(list));
}

}  // namespace hearth::apiserver
