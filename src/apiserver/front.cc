#include "apiserver/front.h"

#include <algorithm>

#include <fmt/format.h>

#include "apiserver/body.h"
#include "apiserver/discovery.h"
#include "apiserver/kept.h"
#include "apiserver/negotiation.h"
#include "apiserver/object_meta.h"
#include "apiserver/open_api.h"
#include "apiserver/table.h"
#include "base/json_text.h"
#include "base/log.h"
#include "model/read_json.h"
#include "model/selector.h"
#include "model/yaml_text.h"

namespace hearth::apiserver {
namespace {

// The Kubernetes whose API this is; kubectl compares its own minor version with it.
constexpr std::string_view kVersion = R"({
  "major": "1",
  "minor": "36",
  "emulationMajor": "1",
  "emulationMinor": "36",
  "minCompatibilityMajor": "1",
  "minCompatibilityMinor": "35",
  "gitVersion": "v1.36.0+hearth",
  "gitCommit": "",
  "gitTreeState": "clean",
  "buildDate": "2026-01-01T00:00:00Z",
  "goVersion": "",
  "compiler": "clang",
  "platform": "linux/amd64"
}
)";

http::Response json_text(unsigned status, std::string text) {
  http::Response response{status, {{"Content-Type", "application/json"}}, std::move(text)};
  response.headers.add("Cache-Control", "no-cache, private");
  return response;
}

http::Response page_not_found() {
  http::Response response{
      404, {{"Content-Type", "text/plain; charset=utf-8"}}, "404 page not found\n"};
  response.headers.add("X-Content-Type-Options", "nosniff");
  return response;
}

http::Response health(const Call& call) {
  std::string body = "ok";
  if (call.query.has("verbose")) {
    const std::string_view name = std::string_view(call.request.path).substr(1);
    body = fmt::format("[+]ping ok\n[+]log ok\n[+]store ok\n{} check passed\n", name);
  }
  http::Response response{200, {{"Content-Type", "text/plain; charset=utf-8"}}, std::move(body)};
  response.headers.add("X-Content-Type-Options", "nosniff");
  return response;
}

// What is not there: built-in groups answer with a Status, everything else with a page.
[[noreturn]] void throw_no_such_resource() {
  throw model::StatusError({.code = 404,
                            .reason = "NotFound",
                            .message = "the server could not find the requested resource",
                            .has_details = true});
}

// The one name that a list or a watch is about, if it is: who may see that object alone may ask so.
std::string name_in(const Query& query) {
  const std::string_view selector = query.text("fieldSelector");
  if (selector.find("metadata.name") == selector.npos) return {};
  try {
    return std::string(
        model::FieldSelector::parse(selector).required_value("metadata.name").value_or(""));
  } catch (const model::StatusError&) {  // who may do it at all is told later
    return {};
  }
}

access::Attributes attributes_of(const http::Request& request, const Query& query,
                                 const std::optional<ResourcePath>& path, bool is_watch) {
  access::Attributes wanted;
  wanted.path = request.path;
  if (!path) {
    wanted.is_resource = false;
    wanted.verb = request.method == "GET" || request.method == "HEAD" ? "get" : "post";
    for (const auto& [method, verb] :
         {std::pair("PUT", "put"), std::pair("PATCH", "patch"), std::pair("DELETE", "delete")})
      if (request.method == method) wanted.verb = verb;
    return wanted;
  }
  wanted.is_resource = true;
  wanted.verb = verb_of(request.method, *path, is_watch);
  wanted.group = path->group;
  wanted.version = path->version;
  wanted.resource = path->plural;
  wanted.subresource = path->subresource;
  wanted.ns = path->ns.value_or("");
  wanted.name = path->name.empty() && request.method == "GET" ? name_in(query) : path->name;
  if (path->plural == "namespaces" && path->group.empty()) wanted.ns = path->name;
  return wanted;
}

}  // namespace

Call Front::understand(const http::Request& request) const {
  return understand_as(request, parts_.gate.identify(request));
}

Call Front::understand_as(const http::Request& request, access::User user) const {
  Call call{.request = request,
            .user = std::move(user),
            .query = Query(request.query),
            .catalogue = parts_.catalogue(),
            .path = parse_resource_path(request.path),
            .resource = nullptr};
  call.is_pretty = wants_pretty(call.query.text("pretty"), request.headers.value("User-Agent"));
  call.is_watch =
      call.path && call.path->name.empty() && request.method == "GET" && call.query.flag("watch");
  parts_.gate.require(call.user, attributes_of(request, call.query, call.path, call.is_watch));
  if (call.path)
    call.resource = call.catalogue->find(call.path->group, call.path->version, call.path->plural);
  return call;
}

http::Response Front::refuse(const std::exception& failure, bool is_pretty) {
  model::Status status;
  if (const auto* error = dynamic_cast<const Error*>(&failure)) {
    status = model::status_of(*error);
  } else {
    status.message = failure.what();
  }
  // Names and bodies come from outside; whatever they are, the answer is JSON.
  status.message = to_utf8(status.message);
  status.name = to_utf8(status.name);
  for (model::StatusCause& cause : status.causes) {
    cause.message = to_utf8(cause.message);
    cause.field = to_utf8(cause.field);
  }
  if (status.code >= 500) log::debug("a request failed", {{"why", status.message}});
  const Json json = model::to_json(status);
  http::Response response = json_text(
      status.code, (is_pretty ? model::to_pretty_text(json) : model::to_text(json)) + "\n");
  if (status.retry_after_seconds > 0)
    response.headers.add("Retry-After", std::to_string(status.retry_after_seconds));
  return response;
}

http::Response Front::answer(const Call& call) noexcept {
  http::Response response;
  try {
    Reply made = reply(call);
    auto* written = std::get_if<Written>(&made);
    response = written ? render_written(call, *written) : std::move(std::get<0>(made));
  } catch (const std::exception& failure) {
    response = refuse(failure, call.is_pretty);
  }
  if (response.headers.value("Cache-Control").empty())
    response.headers.add("Cache-Control", "no-cache, private");
  if (call.resource && !call.resource->deprecation_warning.empty())
    response.headers.add("Warning",
                         fmt::format("299 - {}", json_quote(call.resource->deprecation_warning)));
  return response;
}

bool Front::may_block(const Call& call) const {
  if (call.request.method != "GET" && call.request.method != "HEAD") return true;
  if (call.resource && call.resource->measured) return true;
  // A list as of a revision that is still to come waits for it.
  return call.query.has("resourceVersion");
}

Reply Front::reply(const Call& call) {
  if (!call.path) return plain(call);
  const Catalogue::Version* version =
      call.catalogue->find_version(call.path->group, call.path->version);
  if (!call.resource) {
    if (!version || version->from_crds) return page_not_found();
    throw_no_such_resource();
  }
  const Resource& resource = *call.resource;
  const std::string& method = call.request.method;
  const std::string& sub = call.path->subresource;
  if (resource.namespaced && !call.path->ns && (!call.path->name.empty() || method == "POST")) {
    if (!resource.built_in) return page_not_found();
    model::throw_method_not_allowed();
  }
  if (!resource.namespaced && call.path->ns) {
    if (!resource.built_in) return page_not_found();
    throw_no_such_resource();
  }
  if (resource.create_only) {
    if (method != "POST" || !call.path->name.empty()) model::throw_method_not_allowed();
    return review(call);
  }
  if (resource.measured) return measure(call);
  if (sub == "scale" && resource.scale) return scale(call);
  if (sub == "eviction" && method == "POST") return evict(call);
  if (sub == "binding" && method == "POST") return bind(call);
  if (sub == "token" && method == "POST") return issue_token(call);
  const bool is_part = (sub == "status" && resource.has_status) ||
                       (sub == "finalize" && method == "PUT") ||
                       (sub == "ephemeralcontainers" && resource.store_name == "pods");
  if (!sub.empty() && !is_part) {
    if (!resource.built_in) return page_not_found();
    throw_no_such_resource();
  }

  if (method == "GET" || method == "HEAD") {
    if (call.path->name.empty()) return list(call);
    return get(call);
  }
  if (method == "POST" && sub.empty()) return post(call);
  if (method == "PUT" && !call.path->name.empty()) return put(call);
  if (method == "PATCH" && !call.path->name.empty()) return patch(call);
  if (method == "DELETE" && sub.empty())
    return call.path->name.empty() ? remove_collection(call) : remove(call);
  model::throw_method_not_allowed();
}

// Discovery: what is served. Nothing for other paths.
std::optional<http::Response> Front::discover(const Call& call) const {
  std::string path = call.request.path;
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const Catalogue& catalogue = *call.catalogue;
  const auto render = [&](const Json& json) {
    return json_text(200,
                     (call.is_pretty ? model::to_pretty_text(json) : model::to_text(json)) + "\n");
  };
  if (path == "/") return render(root_paths(catalogue.groups()));
  if (path == "/api" || path == "/apis") {
    const DiscoveryForm form = negotiate_discovery(call.request.headers.value("Accept"));
    if (form == DiscoveryForm::legacy)
      return render(path == "/api" ? api_versions(parts_.address)
                                   : api_group_list(catalogue.groups()));
    http::Response response =
        render(aggregated_discovery(catalogue.groups(), path == "/api", form));
    const std::string etag = etag_of(response.body);
    response.headers.set("Content-Type", std::string(aggregated_content_type(form)));
    response.headers.set("Cache-Control", "public");
    response.headers.add("Vary", "Accept");
    response.headers.add("Etag", etag);
    if (call.request.headers.value("If-None-Match") == etag) response = {304, {{"Etag", etag}}, ""};
    return response;
  }
  const std::size_t prefix = path.starts_with("/apis/") ? 6 : path.starts_with("/api/") ? 5 : 0;
  if (prefix == 0) return std::nullopt;
  const std::string rest = path.substr(prefix);
  const std::size_t slash = rest.find('/');
  if (prefix == 6 && slash == std::string::npos) {
    const Catalogue::Group* group = catalogue.find_group(rest);
    if (!group || rest.empty()) return std::nullopt;
    return render(api_group(*group));
  }
  const std::string group_name = prefix == 5 ? "" : rest.substr(0, slash);
  const std::string version_name = prefix == 5 ? rest : rest.substr(slash + 1);
  const Catalogue::Group* group = catalogue.find_group(group_name);
  const Catalogue::Version* version = catalogue.find_version(group_name, version_name);
  if (!group || !version) return std::nullopt;
  return render(api_resource_list(*group, *version));
}

std::optional<http::Response> Front::open_api(const Call& call) const {
  // What clients ask for is no media type that they would read: '@' may not be in one.
  if (call.request.path == "/openapi/v2" &&
      call.request.headers.value("Accept").find("proto-openapi.spec.v2@v1.0+protobuf") !=
          std::string_view::npos)
    return http::Response{
        200,
        {{"Content-Type", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"}},
        parts_.open_api()->old_document()};
  constexpr std::string_view kRoot = "/openapi/v3";
  const std::string& path = call.request.path;
  if (!path.starts_with(kRoot)) return std::nullopt;
  const std::shared_ptr<const OpenApi> documents = parts_.open_api();
  if (path == kRoot || path == "/openapi/v3/") return json_text(200, documents->index());
  const std::string_view part = std::string_view(path).substr(kRoot.size() + 1);
  const OpenApi::Text text = documents->document(part);
  if (!text) return std::nullopt;
  const std::string etag = "\"" + documents->hash(part) + "\"";
  if (call.request.headers.value("If-None-Match") == etag)
    return http::Response{304, {{"Etag", etag}}, ""};
  http::Response response = json_text(200, *text);
  response.headers.add("Etag", etag);
  return response;
}

// Health, version, discovery, OpenAPI.
http::Response Front::plain(const Call& call) {
  const std::string& path = call.request.path;
  if (call.request.method != "GET" && call.request.method != "HEAD") return page_not_found();
  if (path == "/healthz" || path == "/livez" || path == "/readyz") return health(call);
  if (path == "/version") return json_text(200, std::string(kVersion));
  if (auto json = discover(call)) return std::move(*json);
  if (auto response = open_api(call)) return std::move(*response);
  return page_not_found();
}

TableOptions Front::table_options(const Call& call, const Wanted& form) const {
  TableOptions options;
  options.object = parse_row_object(call.query.text("includeObject"));
  options.meta_version = form.meta_version == "v1beta1" ? "v1beta1" : "v1";
  options.now = parts_.clock.now();
  return options;
}

Place Front::place_of(const Call& call) const {
  return {*call.resource, call.path->ns.value_or(""), call.path->name};
}

http::Response Front::render_object(const Call& call, unsigned status,
                                    const std::string& text) const {
  const Wanted wanted_form = negotiate(call.request.headers.value("Accept"));
  if (wanted_form.shape == Shape::object && !wanted_form.is_yaml && !call.is_pretty)
    return json_text(status, text + "\n");
  Json json = model::read_json(text);
  if (wanted_form.shape == Shape::table)
    json = TablePrinter(*call.resource).print(json, table_options(call, wanted_form));
  else if (wanted_form.shape == Shape::metadata)
    json = to_partial_metadata(json, wanted_form.meta_version);
  if (wanted_form.is_yaml) {
    http::Response response = json_text(status, model::to_yaml(json));
    response.headers.set("Content-Type", "application/yaml");
    return response;
  }
  return json_text(status,
                   (call.is_pretty ? model::to_pretty_text(json) : model::to_text(json)) + "\n");
}

http::Response Front::render_written(const Call& call, const Written& written) const {
  // As much as clients and proxies take in heads.
  constexpr std::size_t kMostWarnings = 32;
  constexpr std::size_t kMostWarningBytes = 4096;
  const unsigned status = written.created ? 201 : 200;
  http::Response response = render_object(
      call, status, written.object ? view_text(*written.object, *call.resource) : written.text);
  std::size_t bytes = 0;
  for (std::size_t at = 0; at < std::min(written.warnings.size(), kMostWarnings); ++at) {
    const std::string quoted = json_quote(written.warnings[at]);
    bytes += quoted.size();
    if (bytes > kMostWarningBytes) break;
    response.headers.add("Warning", "299 - " + quoted);
  }
  return response;
}

Written Front::get(const Call& call) {
  return {parts_.objects.get(place_of(call)), "", false, {}};
}

Json Front::pod_of(const Call& call) const {
  return view(*parts_.objects.get(place_of(call)), *call.resource);
}

}  // namespace hearth::apiserver
