#include "e2b/network_wish.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/ip_text.h"
#include "e2b/answers.h"
#include "e2b/init_outfitter.h"
#include "e2b/state.h"
#include "e2b/words.h"
#include "http/head.h"
#include "http/host_pattern.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "model/read_json.h"

namespace hearth::e2b {
namespace {

using model::Json;
using model::JsonArray;
using model::JsonObject;

constexpr std::string_view kEverything = "0.0.0.0/0";
// Each is a rule in the kernel.
constexpr std::size_t kMostEntries = 256;
constexpr std::size_t kMostHostBytes = 255;

// As it was written, for that is what its user is shown again; but of a network its first address,
// where clients may name any. Nothing for what is neither an IPv4 address nor a network.
std::optional<std::string> parse_cidr(std::string_view text) {
  const auto slash = text.find('/');
  const auto address = parse_ipv4(text.substr(0, slash));
  if (!address) return {};
  if (slash == text.npos) return std::string(text);
  const auto bits = http::parse_number(text.substr(slash + 1));
  if (!bits || *bits > 32) return {};
  const std::uint32_t mask = *bits == 0 ? 0 : ~std::uint32_t{0} << (32 - *bits);
  const in_addr network{.s_addr = address->s_addr & htonl(mask)};
  char first[INET_ADDRSTRLEN];
  ::inet_ntop(AF_INET, &network, first, sizeof first);
  return fmt::format("{}/{}", first, *bits);
}

// A host by its name, or all below one; in lower case.
std::optional<std::string> parse_host(std::string_view text) {
  std::string host(text);
  std::ranges::transform(host, host.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!http::is_host_pattern(host)) return {};
  return host;
}

std::vector<std::string> parse_list(const Body& body, std::string_view field) {
  std::vector<std::string> all = body.list(field).value_or(std::vector<std::string>());
  if (all.size() > kMostEntries)
    fail(Code::invalid, "the field '{}' has {} entries; {} are the most", field, all.size(),
         kMostEntries);
  return all;
}

std::vector<std::string> parse_denied(const Body& body) {
  std::vector<std::string> all = parse_list(body, "denyOut");
  for (std::string& each : all) {
    auto cidr = parse_cidr(each);
    if (!cidr)
      fail(Code::invalid, "'{}' in the field 'denyOut' is no IPv4 address or CIDR{}", each,
           parse_host(each) ? "; names of hosts can only be allowed" : "");
    each = std::move(*cidr);
  }
  return all;
}

std::vector<std::string> parse_allowed(const Body& body) {
  std::vector<std::string> all = parse_list(body, "allowOut");
  for (std::string& each : all) {
    auto parsed = parse_cidr(each);
    if (!parsed) parsed = parse_host(each);
    if (!parsed)
      fail(Code::invalid,
           "'{}' in the field 'allowOut' is no IPv4 address, CIDR or host ('api.example.com', "
           "'*.example.com')",
           each);
    each = std::move(*parsed);
  }
  return all;
}

// Where everything else may be reached anyway, a name would allow nothing and seem to.
void check_names(const EgressWish& wish) {
  const auto name = std::ranges::find_if(
      wish.allow, [](const std::string& each) { return http::is_host_pattern(each); });
  const pool::Egress egress = wish.egress();
  if (name != wish.allow.end() && std::ranges::find(egress.deny, kEverything) == egress.deny.end())
    fail(Code::invalid,
         "the field 'allowOut' names the host '{}': that needs '{}' in 'denyOut' as well", *name,
         kEverything);
}

JsonArray to_json(const std::vector<std::string>& texts) {
  JsonArray all;
  for (const std::string& each : texts) all.emplace_back(each);
  return all;
}

std::vector<std::string> texts_at(const Json& value, std::string_view name) {
  std::vector<std::string> all;
  if (const JsonArray* items = model::array_at(value, {name}))
    for (const Json& each : *items)
      if (each.is_string()) all.emplace_back(each.get_string());
  return all;
}

void check_host(std::string_view host) {
  const auto is_bad = [](unsigned char c) { return c <= ' ' || c >= 0x7f; };
  if (host.size() > kMostHostBytes || std::ranges::any_of(host, is_bad))
    fail(Code::invalid, "the field 'network.maskRequestHost' is no host");
}

void check_ports(const std::vector<std::int64_t>& ports) {
  if (ports.size() > model::kMostHttpsPorts)
    fail(Code::invalid, "the field 'network.httpsPorts' has {} entries; {} are the most",
         ports.size(), model::kMostHttpsPorts);
  for (const std::int64_t port : ports) {
    if (port < 1 || port > 65'535)
      fail(Code::invalid, "{} in the field 'network.httpsPorts' is no port", port);
    if (port == kEnvdPort)
      fail(Code::invalid, "{} in the field 'network.httpsPorts' is envd's, which has no TLS", port);
  }
}

Json text_or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace

pool::Egress EgressWish::egress() const {
  pool::Egress made{.allow = allow, .deny = deny};
  if (!internet.value_or(true) && std::ranges::find(deny, kEverything) == deny.end())
    made.deny.emplace_back(kEverything);
  return made;
}

namespace {

EgressWish parse_lists(const Body& body) {
  if (body.has("egressProxy"))
    refuse_unoffered("an egress proxy", "leave out 'egressProxy', and set proxy variables inside");
  if (const auto rules = body.object("rules"); rules && !rules->is_empty())
    refuse_unoffered("changing requests on their way out", "leave out 'rules'");
  if (body.has_items("dnsServers"))
    refuse_unoffered("a choice of name servers", "leave out 'dnsServers': names are the host's");
  EgressWish wish;
  wish.internet = body.flag("allow_internet_access");
  wish.allow = parse_allowed(body);
  wish.deny = parse_denied(body);
  return wish;
}

}  // namespace

EgressWish parse_egress(const Body& body) {
  const EgressWish wish = parse_lists(body);
  check_names(wish);
  return wish;
}

NetworkWish parse_network(const Body& body) {
  NetworkWish wish;
  if (const auto network = body.object("network")) {
    wish.egress = parse_lists(*network);
    wish.says_public = network->flag("allowPublicTraffic");
    wish.mask_host = network->text("maskRequestHost").value_or("");
    wish.https_ports = network->numbers("httpsPorts").value_or(std::vector<std::int64_t>());
    check_host(wish.mask_host);
    check_ports(wish.https_ports);
  }
  if (const auto internet = body.flag("allow_internet_access")) wish.egress.internet = internet;
  check_names(wish.egress);
  return wish;
}

JsonObject egress_annotations(const EgressWish& wish) {
  JsonObject made{{model::kEgressAnnotation, nullptr}, {kInternetAnnotation, nullptr}};
  if (wish.internet) made[kInternetAnnotation] = *wish.internet ? "true" : "false";
  if (wish.is_open()) return made;
  const pool::Egress egress = wish.egress();
  made[model::kEgressAnnotation] =
      model::to_text(JsonObject{{"allow", to_json(egress.allow)}, {"deny", to_json(egress.deny)}});
  return made;
}

JsonObject network_annotations(const NetworkWish& network) {
  JsonObject made = egress_annotations(network.egress);
  made[model::kTrafficAnnotation] = nullptr;
  if (network.says_public)
    made[model::kTrafficAnnotation] = *network.says_public ? "open" : "token";
  made[model::kMaskHostAnnotation] = text_or_null(network.mask_host);
  made[model::kHttpsPortsAnnotation] =
      text_or_null(fmt::format("{}", fmt::join(network.https_ports, ",")));
  return made;
}

pool::Egress egress_of(const Json& sandbox) {
  const std::string_view text = model::annotation_of(sandbox, model::kEgressAnnotation);
  if (text.empty()) return {};
  try {
    const Json value = model::read_json(text);
    return {.allow = texts_at(value, "allow"), .deny = texts_at(value, "deny")};
  } catch (const Error&) {
    // Written by hand, and wrong: rather nothing than everything.
    return {.allow = {}, .deny = {std::string(kEverything)}};
  }
}

JsonObject network_of(const Json& sandbox) {
  JsonObject network;
  const pool::Egress egress = egress_of(sandbox);
  if (!egress.allow.empty()) network["allowOut"] = to_json(egress.allow);
  if (!egress.deny.empty()) network["denyOut"] = to_json(egress.deny);
  const std::string_view traffic = model::annotation_of(sandbox, model::kTrafficAnnotation);
  if (traffic == "token" || traffic == "open") network["allowPublicTraffic"] = traffic == "open";
  if (const auto host = model::annotation_of(sandbox, model::kMaskHostAnnotation); !host.empty())
    network["maskRequestHost"] = host;
  JsonArray ports;
  for (const std::string& each :
       split_list(model::annotation_of(sandbox, model::kHttpsPortsAnnotation)))
    if (const auto port = http::parse_number(each)) ports.push_back(*port);
  if (!ports.empty()) network["httpsPorts"] = std::move(ports);
  return network;
}

}  // namespace hearth::e2b
