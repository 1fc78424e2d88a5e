// Idle sandboxes in the order in which they are handed out: from the node that has most of them,
// the oldest first. Everything takes the logarithm of how many there are.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/clock.h"

namespace hearth::pool {

struct Member;

// Older ones come first; no two are equal.
struct Age {
  Time created;
  std::uint64_t number = 0;  // in which order they were first seen

  auto operator<=>(const Age&) const = default;
};

class Shelf {
 public:
  void add(const std::string& node, const Age& age, Member& member) {
    change(node, [&](Bin& bin) { bin.emplace(age, &member); });
  }
  void remove(const std::string& node, const Age& age) {
    change(node, [&](Bin& bin) { bin.erase(age); });
  }
  std::size_t size() const { return size_; }

  // The first that `is_wanted`, or null.
  template <typename F>
  Member* find(F is_wanted) const {
    for (const Rank& rank : ranks_) {
      for (const auto& [age, member] : bins_.find(rank.node)->second) {
        if (is_wanted(*member)) return member;
      }
    }
    return nullptr;
  }

 private:
  using Bin = std::map<Age, Member*>;
  struct Rank {
    std::size_t count = 0;  // of a node; none for those that are on no node yet: they come last
    Age oldest;
    std::string node;

    bool operator<(const Rank& other) const {
      if (count != other.count) return count > other.count;
      return oldest < other.oldest;
    }
  };

  static Rank rank_of(const std::string& node, const Bin& bin) {
    return {.count = node.empty() ? 0 : bin.size(), .oldest = bin.begin()->first, .node = node};
  }

  template <typename F>
  void change(const std::string& node, F act) {
    const auto at = bins_.try_emplace(node).first;
    Bin& bin = at->second;
    if (!bin.empty()) ranks_.erase(rank_of(node, bin));
    size_ -= bin.size();
    act(bin);
    size_ += bin.size();
    if (bin.empty()) {
      bins_.erase(at);
    } else {
      ranks_.insert(rank_of(node, bin));
    }
  }

  std::map<std::string, Bin> bins_;  // by node
  std::set<Rank> ranks_;             // of bins_
  std::size_t size_ = 0;
};

}  // namespace hearth::pool
