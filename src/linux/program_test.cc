#include "linux/program.h"

#include <unistd.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::linux {
namespace {

using namespace std::chrono_literals;

TEST(Program, GivesItTheEnvironmentOverOurs) {
  ::setenv("HEARTH_PROGRAM_TEST", "ours", 1);
  ::setenv("HEARTH_PROGRAM_TEST_KEPT", "kept", 1);

  const ProgramResult result =
      run_program({"sh", "-c", "cat; echo $HEARTH_PROGRAM_TEST $HEARTH_PROGRAM_TEST_KEPT; exit 3"},
                  {.input = "read;", .environment = {"HEARTH_PROGRAM_TEST=a=b"}});

  EXPECT_EQ(result.output, "read;a=b kept\n");
  EXPECT_EQ(result.status.code, 3);
}

TEST(Program, HandsItsStandardErrorOn) {
  Pipe pipe = make_pipe();

  run_program({"sh", "-c", "echo oh >&2"}, {.error_fd = pipe.write.get()});

  pipe.write.reset();
  char said[8] = {};
  EXPECT_EQ(::read(pipe.read.get(), said, sizeof said), 3);
  EXPECT_STREQ(said, "oh\n");
}

TEST(Program, OneThatIsNotThereIsNotFound) {
  try {
    run_program({"hearth-no-such-program"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
  }
}

TEST(Program, IsKeptToItsLimits) {
  EXPECT_THROW(run_program({"sleep", "100"}, {.timeout = 20ms}), Error);
  EXPECT_THROW(run_program({"yes"}, {.max_output = 1000}), Error);
}

}  // namespace
}  // namespace hearth::linux
