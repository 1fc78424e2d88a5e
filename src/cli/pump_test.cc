#include "cli/pump.h"

#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

#include "cli/attachment.h"
#include "cli/metrics.h"

namespace hearth::cli {
namespace {

class PumpTest : public testing::Test {
 protected:
  void SetUp() override {
    linux::set_nonblocking(from_.read.get(), true);
    linux::set_nonblocking(to_.read.get(), true);
  }

  // What has arrived at the other end by now.
  std::string arrived() {
    std::array<char, 1024> buffer{};
    const ssize_t got = ::read(to_.read.get(), buffer.data(), buffer.size());
    return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  }

  linux::Pipe from_ = linux::make_pipe();
  linux::Pipe to_ = linux::make_pipe();
};

TEST_F(PumpTest, WaitsForOneEndThenForTheOther) {
  Pump pump(from_.read.get(), to_.write.get());
  linux::write_all(from_.write.get(), "hello");

  EXPECT_EQ(pump.waiting().fd, from_.read.get());
  pump.step();
  EXPECT_EQ(pump.waiting().fd, to_.write.get());
  pump.step();

  EXPECT_EQ(arrived(), "hello");
  EXPECT_EQ(pump.waiting().fd, from_.read.get());
}

TEST_F(PumpTest, TheEndOfOneIsPassedOnToTheOther) {
  const int write_fd = to_.write.get();
  Pump pump(from_.read.get(), write_fd, std::move(to_.write));
  from_.write.reset();

  pump.step();

  EXPECT_LT(pump.waiting().fd, 0);
  char byte = 0;
  EXPECT_EQ(::read(to_.read.get(), &byte, 1), 0);
}

TEST_F(PumpTest, DrainingDoesNotWaitForAWriterThatStays) {
  Pump pump(from_.read.get(), to_.write.get());
  linux::write_all(from_.write.get(), "rest");

  pump.drain();

  EXPECT_EQ(arrived(), "rest");
}

TEST_F(PumpTest, OnlyWhatHasNothingToSayAboutTheHostIsHandedOver) {
  const linux::Fd folder = linux::open_file("/", 0);
  const linux::Fd null = linux::open_file("/dev/null", 2);
  const linux::Fd zero = linux::open_file("/dev/zero", 0);
  const linux::Fd file = linux::open_file("/proc/self/exe", 0);

  EXPECT_TRUE(may_be_input(from_.read.get()) && may_be_output(to_.write.get()));
  EXPECT_TRUE(may_be_input(null.get()) && may_be_output(null.get()));
  EXPECT_TRUE(may_be_input(file.get()));
  EXPECT_FALSE(may_be_output(file.get()));
  for (const int fd : {folder.get(), zero.get(), -1}) {
    EXPECT_FALSE(may_be_input(fd) || may_be_output(fd)) << fd;
  }
}

TEST(MetricsTest, SandboxesAreCountedByState) {
  const std::vector<runtime::Sandbox> sandboxes = {{.id = "a"},
                                                   {.id = "b"},
                                                   {.id = "c", .state = runtime::State::exited},
                                                   {.id = "d", .state = runtime::State::paused}};

  const std::string text = render_metrics(sandboxes, {.warm = 3, .warm_hits = 4, .warm_misses = 5},
                                          Time(std::chrono::milliseconds(1'700'000'000'500)));

  EXPECT_NE(text.find("hearth_sandboxes{state=\"running\"} 2\n"), std::string::npos);
  EXPECT_NE(text.find("hearth_sandboxes{state=\"exited\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("hearth_sandboxes{state=\"paused\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("hearth_warm_shells 3\n"), std::string::npos);
  EXPECT_NE(text.find("hearth_warm_hits_total 4\n"), std::string::npos);
  EXPECT_NE(text.find("hearth_warm_misses_total 5\n"), std::string::npos);
  EXPECT_NE(text.find("hearth_build_info{version=\"" HEARTH_VERSION "\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("process_start_time_seconds 1700000000.500\n"), std::string::npos);
}

}  // namespace
}  // namespace hearth::cli
