#include "linux/channel.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::linux {
namespace {

// Two ends, and a file to send from one to the other.
class ChannelFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::tie(near, far) = Channel::make_pair();
    file = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(file);
  }

  Channel near;
  Channel far;
  Fd file;
};

TEST_F(ChannelFiles, Arrive) {
  const std::array fds{file.get(), file.get(), file.get()};
  near.send("three", fds);
  const auto message = far.receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->bytes, "three");
  EXPECT_EQ(message->fds.size(), 3U);
}

// Whose fault it is decides whether asking again may help.
TEST_F(ChannelFiles, ThatThereIsNoNumberForAreAShortage) {
  const std::array fds{file.get(), file.get(), file.get()};
  near.send("three", fds);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const Fd first_free(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
  const rlimit full{.rlim_cur = static_cast<rlim_t>(first_free.get()) + 1,
                    .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
  std::optional<Code> code;
  try {
    far.receive();
  } catch (const Error& error) {
    code = error.code();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(code, Code::exhausted);
}

}  // namespace
}  // namespace hearth::linux
