#include "node/pod_policy.h"

#include <fmt/format.h>

#include "base/error.h"
#include "model/front_door.h"
#include "model/meta.h"

namespace hearth::node {
namespace {

using network::Cidr;
using network::Rule;

std::vector<Cidr> parse_all(const std::vector<std::string>& texts) {
  std::vector<Cidr> cidrs;
  for (const std::string& text : texts) cidrs.push_back(network::parse_cidr(text));
  return cidrs;
}

// What is left of `whole` without `taken`: halves of it, down to where they part.
void subtract(const Cidr& whole, const Cidr& taken, std::vector<Cidr>& left) {
  if (!whole.overlaps(taken)) return left.push_back(whole);
  if (taken.prefix <= whole.prefix) return;
  const auto prefix = static_cast<std::uint8_t>(whole.prefix + 1);
  const std::uint32_t upper = whole.address | (std::uint32_t{1} << (32 - prefix));
  subtract({.address = whole.address, .prefix = prefix}, taken, left);
  subtract({.address = upper, .prefix = prefix}, taken, left);
}

std::vector<Cidr> subtract_all(std::vector<Cidr> wholes, const std::vector<Cidr>& taken) {
  for (const Cidr& one : taken) {
    std::vector<Cidr> left;
    for (const Cidr& whole : wholes) subtract(whole, one, left);
    if (left.size() > network::kMostRules)
      fail(Code::invalid, "the pod's egress lists need more than {} rules", network::kMostRules);
    wholes = std::move(left);
  }
  return wholes;
}

void append(std::vector<Rule>& rules, const std::vector<Cidr>& cidrs) {
  for (const Cidr& cidr : cidrs) rules.push_back({.to = cidr});
}

std::vector<std::string> texts_of(const Json& list) {
  if (!list.is_array()) fail(Code::invalid, "its lists are to be lists of texts");
  std::vector<std::string> texts;
  for (const Json& text : list.get_array()) {
    if (!text.is_string()) fail(Code::invalid, "its lists are to be lists of texts");
    texts.emplace_back(std::string_view(text.get_string()));
  }
  return texts;
}

}  // namespace

network::Policy pod_policy(const Json& pod) {
  network::Policy policy{.mode = network::Mode::world};
  const std::string_view text = model::annotation_of(pod, model::kEgressAnnotation);
  if (!text.empty()) narrow(policy, parse_egress(text));
  return policy;
}

void narrow(network::Policy& policy, const pool::Egress& egress) {
  const std::vector<Cidr> allow = parse_all(egress.allow);
  const std::vector<Cidr> deny = parse_all(egress.deny);
  if (policy.mode == network::Mode::world) {
    append(policy.allow, allow);
    append(policy.deny, deny);
  } else if (policy.mode == network::Mode::listed) {
    // What is listed passes before anything is denied: it has to be shorter.
    const std::vector<Cidr> denied = subtract_all(deny, allow);
    std::vector<Rule> rules;
    for (const Rule& rule : policy.allow) {
      for (const Cidr& part : subtract_all({rule.to}, denied)) {
        rules.push_back(rule);
        rules.back().to = part;
      }
    }
    policy.allow = std::move(rules);
  }
  network::check(policy);
}

std::string egress_text(const pool::Egress& egress) {
  const auto list = [](const std::vector<std::string>& texts) {
    return model::JsonArray(texts.begin(), texts.end());
  };
  return model::to_text(
      model::JsonObject{{"allow", list(egress.allow)}, {"deny", list(egress.deny)}});
}

pool::Egress parse_egress(std::string_view text) {
  try {
    const Json value = model::parse_json(text).value;
    if (!value.is_object()) fail(Code::invalid, "it is to be an object with 'allow' and 'deny'");
    pool::Egress egress;
    for (const auto& member : value.get_object()) {
      // A word that is not understood may be the one that matters.
      if (member.key() != "allow" && member.key() != "deny")
        fail(Code::invalid, "'{}' is neither 'allow' nor 'deny'", std::string_view(member.key()));
      (member.key() == "allow" ? egress.allow : egress.deny) = texts_of(member.value());
    }
    return egress;
  } catch (const Error& error) {
    fail(Code::invalid, "annotation {}: {}", model::kEgressAnnotation, error.what());
  }
}

}  // namespace hearth::node
