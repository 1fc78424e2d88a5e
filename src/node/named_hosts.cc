#include "node/named_hosts.h"

#include <algorithm>

#include "http/host_pattern.h"
#include "model/front_door.h"
#include "node/pod_index.h"
#include "node/pod_policy.h"

namespace hearth::node {

bool NamedHosts::Rules::has(std::string_view name) const {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return http::matches_host(pattern, name); });
}

void NamedHosts::set_rules(const model::Json& pod) {
  const std::uint32_t address = address_of_pod(pod);
  const std::string_view egress = model::annotation_of(pod, model::kEgressAnnotation);
  std::vector<std::string> patterns;
  if (!egress.empty()) {
    pool::Egress lists = parse_egress(egress);
    patterns = take_names(lists);
  }
  rules_.with([&](ByAddress& all) {
    const std::string_view uid = model::uid_of(pod);
    if (address == 0 || patterns.empty()) {
      all.erase(address);
      std::erase_if(all, [&](const auto& one) { return one.second.pod.uid == uid; });
      return;
    }
    Rules& rules = all[address];
    if (rules.pod.uid != uid) rules = {};
    rules.pod = {.key = model::key_of(pod), .uid = std::string(uid), .egress = std::string(egress)};
    rules.patterns = std::move(patterns);
    rules.answers.remove_if([&](const Answer& answer) { return !rules.has(answer.name); });
  });
}

void NamedHosts::forget(std::string_view uid) {
  rules_.with([&](ByAddress& all) {
    std::erase_if(all, [&](const auto& one) { return one.second.pod.uid == uid; });
  });
}

void NamedHosts::forget_others(std::uint32_t address, std::string_view uid) {
  rules_.with([&](ByAddress& all) {
    const auto found = all.find(address);
    if (found != all.end() && found->second.pod.uid != uid) all.erase(found);
  });
}

bool NamedHosts::has_rules(std::string_view uid) const {
  return rules_.with([&](const ByAddress& all) {
    return std::ranges::any_of(all, [&](const auto& one) { return one.second.pod.uid == uid; });
  });
}

NameRuling NamedHosts::judge(std::uint32_t address, std::string_view name) const {
  return rules_.with([&](const ByAddress& all) {
    const auto found = all.find(address);
    if (found == all.end()) return NameRuling::free;
    return found->second.has(name) ? NameRuling::named : NameRuling::refused;
  });
}

std::optional<NamedHosts::Pod> NamedHosts::find(std::uint32_t address) const {
  return rules_.with([&](const ByAddress& all) {
    const auto found = all.find(address);
    return found == all.end() ? std::nullopt : std::optional(found->second.pod);
  });
}

bool NamedHosts::learn(std::uint32_t address, const std::string& name,
                       std::span<const std::uint32_t> answered) {
  return rules_.with([&](ByAddress& all) {
    const auto found = all.find(address);
    if (found == all.end() || !found->second.has(name)) return false;
    Rules& rules = found->second;
    for (const std::uint32_t each : answered) {
      const auto is_it = [&](const Answer& answer) {
        return answer.address == each && answer.name == name;
      };
      const auto known = std::ranges::find_if(rules.answers, is_it);
      if (known != rules.answers.end()) {
        rules.answers.splice(rules.answers.begin(), rules.answers, known);
        continue;
      }
      rules.answers.push_front({.name = name, .address = each});
      rules.is_told = false;
    }
    if (rules.answers.size() > kMostAnswers) rules.answers.resize(kMostAnswers);
    return !rules.is_told;
  });
}

void NamedHosts::note_told(std::string_view uid) {
  rules_.with([&](ByAddress& all) {
    for (auto& [address, rules] : all)
      if (rules.pod.uid == uid) rules.is_told = true;
  });
}

std::vector<std::uint32_t> NamedHosts::answered_to(std::string_view uid) const {
  return rules_.with([&](const ByAddress& all) {
    std::vector<std::uint32_t> addresses;
    for (const auto& [address, rules] : all) {
      if (rules.pod.uid != uid) continue;
      for (const Answer& answer : rules.answers)
        if (std::ranges::find(addresses, answer.address) == addresses.end())
          addresses.push_back(answer.address);
    }
    return addresses;
  });
}

}  // namespace hearth::node
