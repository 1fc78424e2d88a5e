// What E2B has and this engine has not: 501, and what to do instead.
#include "e2b/routes.h"

namespace hearth::e2b {
namespace {

struct Unoffered {
  const char* method;
  const char* pattern;
};

constexpr Unoffered kBuilder[] = {
    {"POST", "/templates"},
    {"POST", "/v2/templates"},
    {"POST", "/v3/templates"},
    {"POST", "/templates/{id}"},
    {"POST", "/templates/{id}/builds/{build}"},
    {"POST", "/v2/templates/{id}/builds/{build}"},
    {"GET", "/templates/{id}/builds/{build}/status"},
    {"GET", "/templates/{id}/builds/{build}/logs"},
    {"GET", "/templates/{id}/files/{hash}"},
};

}  // namespace

void add_unoffered_routes(Routes& routes) {
  for (const auto& [method, pattern] : kBuilder)
    routes.add_unoffered(method, pattern, "building a template",
                         "make one of an image with 'hearth template', or a snapshot of a sandbox");
  // Of the dashboard: counts and histories of tags, and the templates of E2B's own.
  routes.add_unoffered("GET", "/templates/{id}/tags/{rest...}", "more about a template's tags",
                       "ask for '/templates/ID/tags'");
  routes.add_unoffered("GET", "/default-templates", "a list of default templates",
                       "ask for '/templates'");
  for (const char* pattern : {"/volumes", "/volumes/{rest...}", "/volumecontent/{rest...}"})
    routes.add_unoffered("*", pattern, "a volume", "write files into the sandbox");
  for (const char* pattern : {"/secrets", "/secrets/{rest...}"})
    routes.add_unoffered("*", pattern, "a secret", "give the sandbox a variable in 'envVars'");
  for (const char* pattern : {"/access-tokens", "/access-tokens/{rest...}"})
    routes.add_unoffered("*", pattern, "an access token", "use an API key");
  for (const char* pattern : {"/nodes", "/nodes/{rest...}", "/admin/{rest...}"})
    routes.add_unoffered("*", pattern, "this part of the API", "ask Kubernetes' API for nodes");
  routes.add_unoffered("*", "/events/{rest...}", "a list of events",
                       "ask for a sandbox's logs, or watch Sandboxes in Kubernetes' API");
}

}  // namespace hearth::e2b
