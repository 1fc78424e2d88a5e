// Hosts that pods may reach by name (docs/adr/0025): what each may ask for, and the addresses that
// it was answered. Thread-safe; touches no kernel.
//
// An address stays for as long as the rule does under which it was answered: a connection may last
// longer than the answer's own time, and is not cut for it. Of too many, those go that were not
// answered for the longest time.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/guarded.h"
#include "model/json.h"
#include "model/meta.h"

namespace hearth::node {

enum class NameRuling {
  free,   // no rules by name: ask whatever you like
  named,  // and what it is answered has to be learned first
  refused,
};

class NamedHosts {
 public:
  // For each pod. Each is a rule in the kernel.
  static constexpr std::size_t kMostAnswers = 128;

  // Who is at an address, and what its annotation hearth.dev/egress says.
  struct Pod {
    model::Key key;
    std::string uid;
    std::string egress;
  };

  // By its annotation, in the place of what was said of this pod and of its address. Answers that
  // the new rules would give as well stay. Throws Error(invalid) for an annotation that makes no
  // sense.
  void set_rules(const model::Json& pod);
  void forget(std::string_view uid);
  // A pod without rules has that address now: what was said of whoever had it before is void.
  void forget_others(std::uint32_t address, std::string_view uid);
  bool has_rules(std::string_view uid) const;

  NameRuling judge(std::uint32_t address, std::string_view name) const;
  std::optional<Pod> find(std::uint32_t address) const;

  // False if the kernel knows all of them. Whoever tells it says so with note_told().
  bool learn(std::uint32_t address, const std::string& name,
             std::span<const std::uint32_t> answered);
  void note_told(std::string_view uid);

  // The newest first.
  std::vector<std::uint32_t> answered_to(std::string_view uid) const;

 private:
  struct Answer {
    std::string name;
    std::uint32_t address = 0;
  };
  struct Rules {
    Pod pod;
    std::vector<std::string> patterns;
    std::list<Answer> answers;  // the newest first
    bool is_told = true;

    bool has(std::string_view name) const;
  };
  using ByAddress = std::map<std::uint32_t, Rules>;

  Guarded<ByAddress> rules_;
};

}  // namespace hearth::node
