#include "cli/checks.h"

#include <gtest/gtest.h>

namespace hearth::cli {
namespace {

TEST(ChecksTest, KernelReleasesAreReadUpToTheSecondNumber) {
  EXPECT_EQ(parse_kernel_release("6.1.0-18-amd64"), (KernelVersion{.major = 6, .minor = 1}));
  EXPECT_EQ(parse_kernel_release("5.19"), (KernelVersion{.major = 5, .minor = 19}));
  EXPECT_LT(parse_kernel_release("5.9.1"), parse_kernel_release("5.10.0"));
  for (const char* text : {"", "six", "6", "6."})
    EXPECT_EQ(parse_kernel_release(text), KernelVersion{}) << text;
}

TEST(ChecksTest, FileSystemsAreFoundByTheirWholeName) {
  constexpr const char* kText = "nodev\tsysfs\n\text4\nnodev\toverlay\n";

  EXPECT_TRUE(has_file_system(kText, "overlay"));
  EXPECT_TRUE(has_file_system(kText, "ext4"));
  EXPECT_FALSE(has_file_system(kText, "over"));
  EXPECT_FALSE(has_file_system("", "overlay"));
}

TEST(ChecksTest, ALimitWithoutAControllerIsAWarningWithAFix) {
  EXPECT_EQ(describe_limit("memory", "enforced by v2").health, Health::ok);

  const Check check = describe_limit("pids", "");
  EXPECT_EQ(check.health, Health::degraded);
  EXPECT_FALSE(check.essential);
  EXPECT_FALSE(check.lost.empty());
  EXPECT_NE(check.fix.find("pids"), std::string::npos);
}

TEST(ChecksTest, WhateverIsNotWellSaysWhatIsLostAndWhatToDo) {
  for (const auto& checks :
       {check_kernel(), check_cgroups(), check_network(), check_machine("/nonexistent/state")}) {
    EXPECT_FALSE(checks.empty());
    for (const Check& check : checks) {
      EXPECT_FALSE(check.found.empty()) << check.name;
      EXPECT_EQ(check.health == Health::ok, check.lost.empty()) << check.name;
      EXPECT_EQ(check.health == Health::ok, check.fix.empty()) << check.name;
    }
  }
}

}  // namespace
}  // namespace hearth::cli
