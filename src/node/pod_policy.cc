#include "node/pod_policy.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"
#include "http/host_pattern.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "node/network_policy.h"

namespace hearth::node {
namespace {

using network::Cidr;
using network::Rule;

std::vector<Cidr> parse_all(const std::vector<std::string>& texts) {
  std::vector<Cidr> cidrs;
  for (const std::string& text : texts) cidrs.push_back(network::parse_cidr(text));
  return cidrs;
}

// What is left of all of them.
std::vector<Cidr> cut(const std::vector<Cidr>& wholes, const std::vector<Cidr>& taken) {
  std::vector<Cidr> left;
  for (const Cidr& whole : wholes)
    std::ranges::copy(without(whole, taken), std::back_inserter(left));
  return left;
}

// The same of rules.
void shorten(std::vector<Rule>& rules, const std::vector<Cidr>& taken) {
  std::vector<Rule> left;
  for (const Rule& rule : rules) {
    for (const Cidr& part : without(rule.to, taken)) {
      left.push_back(rule);
      left.back().to = part;
    }
  }
  rules = std::move(left);
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
  narrow_as_asked(policy, pod);
  return policy;
}

void narrow_as_asked(network::Policy& policy, const Json& pod,
                     std::span<const std::uint32_t> answered) {
  const std::string_view text = model::annotation_of(pod, model::kEgressAnnotation);
  if (text.empty()) return;
  pool::Egress egress = parse_egress(text);
  if (take_names(egress).empty()) answered = {};
  const network::Policy whole = policy;
  while (true) {
    pool::Egress all = egress;
    for (const std::uint32_t address : answered)
      all.allow.push_back(network::address_text(address));
    try {
      return narrow(policy, all);
    } catch (const Error&) {
      // Too many rules: fewer answers may do. Without any it is the annotation's own fault.
      if (answered.empty()) throw;
      answered = answered.first(answered.size() / 2);
      policy = whole;
    }
  }
}

void narrow(network::Policy& policy, const pool::Egress& egress) {
  const std::vector<Cidr> allow = parse_all(egress.allow);
  const std::vector<Cidr> deny = parse_all(egress.deny);
  // These pass before anything is denied: they have to be shorter.
  const std::vector<Cidr> taken = cut(deny, allow);
  shorten(policy.open, taken);
  shorten(policy.allow, taken);
  if (policy.mode == network::Mode::world) {
    std::vector<Cidr> denied_before;
    for (const Rule& rule : policy.deny) denied_before.push_back(rule.to);
    append(policy.allow, cut(allow, denied_before));
    append(policy.deny, deny);
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

std::vector<std::string> take_names(pool::Egress& egress) {
  std::vector<std::string> names;
  std::erase_if(egress.allow, [&](const std::string& entry) {
    if (!http::is_host_pattern(entry)) return false;
    names.push_back(entry);
    return true;
  });
  return names;
}

}  // namespace hearth::node
