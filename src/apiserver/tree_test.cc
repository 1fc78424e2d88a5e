#include "apiserver/tree.h"

#include <gtest/gtest.h>

namespace hearth::apiserver {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<const Tree> make_tree() {
  return std::make_shared<Tree>(model::JsonObject(), patch::Owners(), nullptr);
}

TEST(RecentTrees, AreHeldForAWhile) {
  RecentTrees trees;
  const RecentTrees::Moment begin;
  std::weak_ptr<const Tree> first;
  {
    const auto tree = make_tree();
    first = tree;
    trees.keep(tree, begin);
  }
  trees.keep(make_tree(), begin + 600ms);
  trees.let_go_of_old(begin + 900ms);
  EXPECT_FALSE(first.expired());
  trees.let_go_of_old(begin + 1s);
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(trees.size(), 1U);
  trees.let_go_of_old(begin + 2s);
  EXPECT_EQ(trees.size(), 0U);
}

TEST(RecentTrees, AreNotMoreThanMemoryAllows) {
  RecentTrees trees;
  const RecentTrees::Moment begin;
  const auto first = make_tree();
  trees.keep(first, begin);
  for (int i = 0; i < 5000; ++i) trees.keep(make_tree(), begin);
  EXPECT_EQ(first.use_count(), 1);
  EXPECT_EQ(trees.size(), 1024U);
}

}  // namespace
}  // namespace hearth::apiserver
