// What every container is told of the Services around it: REDIS_SERVICE_HOST and its like.
//
// Services change seldom and pods start often, so the texts are made once for each Service. Most
// have no address (those of Sandboxes) and cost nothing here.
#include <algorithm>
#include <cctype>

#include "base/guarded.h"
#include "client/kinds.h"
#include "client/watch_cache.h"
#include "model/meta.h"
#include "node/plan_internal.h"

namespace hearth::node {
namespace {

using model::text_at;

constexpr Duration kSyncPatience = std::chrono::seconds(30);
constexpr std::string_view kApiServer = "kubernetes";

std::string variable_word(std::string_view name) {
  std::string word(name);
  std::ranges::transform(word, word.begin(), [](unsigned char c) {
    return c == '-' || c == '.' ? '_' : static_cast<char>(std::toupper(c));
  });
  return word;
}

// host:port words that Docker's links had, one group for each port.
void add_link(Variables& variables, const std::string& prefix, const std::string& host,
              const Json& port) {
  const std::string number = std::to_string(model::number_at(port, {"port"}).value_or(0));
  std::string protocol(text_at(port, {"protocol"}));
  if (protocol.empty()) protocol = "TCP";
  std::string lower = protocol;
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string url = lower + "://" + host + ":" + number;
  const std::string link = prefix + "_PORT_" + number + "_" + protocol;
  variables.emplace_back(link, url);
  variables.emplace_back(link + "_PROTO", lower);
  variables.emplace_back(link + "_PORT", number);
  variables.emplace_back(link + "_ADDR", host);
}

Variables variables_of(const Json& service) {
  Variables variables;
  const std::string host(text_at(service, {"spec", "clusterIP"}));
  const JsonArray* ports = model::array_at(service, {"spec", "ports"});
  if (host.empty() || host == "None" || !ports || ports->empty()) return variables;
  const std::string prefix = variable_word(model::name_of(service));
  const std::string first = std::to_string(model::number_at(ports->front(), {"port"}).value_or(0));
  variables.emplace_back(prefix + "_SERVICE_HOST", host);
  variables.emplace_back(prefix + "_SERVICE_PORT", first);
  for (const Json& port : *ports)
    if (const std::string_view name = text_at(port, {"name"}); !name.empty())
      variables.emplace_back(prefix + "_SERVICE_PORT_" + variable_word(name),
                             std::to_string(model::number_at(port, {"port"}).value_or(0)));
  const std::size_t links = variables.size();
  for (const Json& port : *ports) add_link(variables, prefix, host, port);
  if (links < variables.size())
    variables.emplace(variables.begin() + static_cast<std::ptrdiff_t>(links), prefix + "_PORT",
                      variables[links].second);
  return variables;
}

using ByNamespace =
    std::map<std::string, std::map<std::string, Variables, std::less<>>, std::less<>>;

void append(Variables& all, const Variables& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

struct ServiceVariables::State {
  explicit State(client::Client& client) : cache(client, client::kServices) {
    cache.add_handlers(
        {.on_add = [this](const client::Object& now) { put(*now); },
         .on_update = [this](const client::Object&, const client::Object& now) { put(*now); },
         .on_delete = [this](const client::Object& last) { drop(*last); }});
    cache.start();
  }

  void put(const Json& service) {
    Variables variables = variables_of(service);
    if (variables.empty()) return drop(service);
    known.with([&](ByNamespace& all) {
      all[std::string(model::namespace_of(service))][std::string(model::name_of(service))] =
          std::move(variables);
    });
  }
  void drop(const Json& service) {
    known.with([&](ByNamespace& all) {
      const auto found = all.find(model::namespace_of(service));
      if (found == all.end()) return;
      found->second.erase(std::string(model::name_of(service)));
      if (found->second.empty()) all.erase(found);
    });
  }

  Guarded<ByNamespace> known;
  client::WatchCache cache;  // last: its handlers use what is above
};

ServiceVariables::ServiceVariables(client::Client& client)
    : state_(std::make_unique<State>(client)) {}

ServiceVariables::~ServiceVariables() {
  state_->cache.stop();
}

Variables ServiceVariables::of(std::string_view ns, bool links) const {
  // Only the first pods of an engine's life can come this early.
  if (!state_->cache.is_synced()) state_->cache.wait_synced(kSyncPatience);
  return state_->known.with([&](const ByNamespace& all) {
    Variables variables;
    if (const auto found = all.find("default"); found != all.end())
      if (const auto api = found->second.find(kApiServer); api != found->second.end())
        append(variables, api->second);
    const auto found = all.find(ns);
    if (!links || found == all.end()) return variables;
    for (const auto& [name, own] : found->second)
      if (name != kApiServer || ns != "default") append(variables, own);
    return variables;
  });
}

}  // namespace hearth::node
