// A client of the privileged daemon that means it harm: whoever took over the engine, say.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <random>

#include "base/error.h"
#include "escape/testing.h"
#include "linux/files.h"
#include "linux/sealed_memfd.h"
#include "runtime/protocol.h"

namespace hearth::escape {
namespace {

using namespace std::chrono_literals;
using namespace runtime;

const std::vector<std::string> kBadNames = {"",
                                            ".",
                                            "..",
                                            "../x",
                                            "/etc",
                                            "a/b",
                                            "a/../../b",
                                            "-a",
                                            "a-",
                                            "A",
                                            "a b",
                                            "a\nb",
                                            "a\\b",
                                            "a%2fb",
                                            "\xff\xfe",
                                            "~root",
                                            "$(id)",
                                            ".hidden",
                                            std::string("a\0b", 3),
                                            std::string(64, 'a'),
                                            std::string(300, 'a'),
                                            std::string(70'000, '/')};

class EscapeClient : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    if (IsSkipped()) return;
    channel_ = connect_raw();
    ask(encode(Request(HelloRequest{})));  // so that it is counted
    descriptors_ = descriptors();
    descriptors_.erase(std::ranges::find(descriptors_, "socket"));  // that one goes
    before_ = everything_in_state();
  }
  // After everything: it serves, has as many descriptors as before, and made nothing.
  void TearDown() override {
    if (!IsSkipped()) {
      channel_ = {};
      EXPECT_EQ(sh("echo alive").output, "alive\n");
      const Deadline deadline = Deadline::after(60s);
      while (descriptors() != descriptors_ && !deadline.passed()) ::usleep(1000);
      const std::vector<std::string> now = descriptors();
      std::vector<std::string> extra;
      std::ranges::set_difference(now, descriptors_, std::back_inserter(extra));
      EXPECT_EQ(extra, std::vector<std::string>());
      EXPECT_EQ(everything_in_state(), before_);
    }
    SandboxTest::TearDown();
  }

  static linux::Channel connect_raw() {
    const linux::Fd folder = linux::open_file(engine_->state_dir(), O_PATH | O_DIRECTORY);
    return linux::connect_at(folder.get(), kSocketName);
  }
  // What each leads to; sockets are alike.
  static std::vector<std::string> descriptors() {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", engine_->pid()))) {
      std::error_code gone;
      const std::string to = fs::read_symlink(entry.path(), gone);
      // User namespaces are kept for the next sandbox with the same ids.
      if (!gone && !to.starts_with("user:")) all.push_back(to.substr(0, to.find(':')));
    }
    std::ranges::sort(all);
    return all;
  }
  static std::vector<std::string> everything_in_state() {
    std::vector<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(engine_->state_dir())) {
      const std::string path = entry.path();
      if (path.find("/images/") == std::string::npos) all.push_back(path);
    }
    std::ranges::sort(all);
    return all;
  }

  Reply ask(const std::string& bytes, std::span<const int> fds = {}) {
    channel_.send(bytes, fds, Deadline::after(60s));
    const auto answer = channel_.receive(Deadline::after(60s));
    if (!answer) fail(Code::unavailable, "the runtime hung up");
    return parse_reply(answer->bytes);
  }
  // Everything must be refused, with one of the codes that are for bad requests.
  void expect_refused(const Request& request, const std::string& what,
                      std::span<const int> fds = {}) {
    const Reply reply = ask(encode(request), fds);
    const auto* refusal = std::get_if<Failed>(&reply);
    ASSERT_NE(refusal, nullptr) << what;
    EXPECT_NE(refusal->code, Code::internal) << what << ": " << refusal->message;
  }
  void expect_refused_spec(const SandboxSpec& spec, const std::string& what) {
    expect_refused(CreateRequest{.spec = spec}, what);
  }

  linux::Channel channel_;
  std::vector<std::string> descriptors_;
  std::vector<std::string> before_;
};

TEST_F(EscapeClient, NamesThatArePathsAreRefused) {
  for (const std::string& name : kBadNames) {
    if (!name.empty()) expect_refused_spec({.id = name}, "id " + name);
    expect_refused(ConnectRequest{.id = name}, "connect " + name);
    expect_refused(GetRequest{.id = name}, "get " + name);
    expect_refused(PauseRequest{.id = name}, "pause " + name);
    expect_refused(ForkRequest{.id = name}, "fork " + name);
    expect_refused(RemoveVolumeRequest{.name = name}, "remove volume " + name);
    expect_refused(PolicyRequest{.id = name, .policy = {}}, "policy " + name);
  }
}

TEST_F(EscapeClient, ImageNamesThatArePathsAreRefused) {
  for (const char* name : {"..", "../x", "/etc", "a/../b", "a//b", ".", "a/.", "-a", "a\nb", ""}) {
    expect_refused(CommitRequest{.id = id_, .name = name}, std::string("commit ") + name);
    image::Image image;
    image.name = name;
    image.id = "sha256:" + std::string(64, 'a');
    expect_refused(PutImageRequest{.image = image}, std::string("put ") + name);
    if (*name != '\0') expect_refused_spec({.image = name}, std::string("image ") + name);
  }
}

TEST_F(EscapeClient, LayersThatAreNotThereOrLieAreRefused) {
  image::Image image;
  image.name = "liar";
  image.id = "sha256:" + std::string(64, 'a');
  for (const std::string& layer :
       {std::string("../../etc"), std::string("sha256:../../etc"), "sha256:" + std::string(64, 'b'),
        "sha256:" + std::string(64, 'B'), std::string()}) {
    image.layers = {layer};
    expect_refused(PutImageRequest{.image = image}, "layer " + layer);
  }
  image.layers.assign(40'000, "sha256:" + std::string(64, 'b'));
  expect_refused(PutImageRequest{.image = image}, "many layers");

  const linux::Fd empty_tar = linux::make_sealed_memfd("layer", std::string(1024, '\0'));
  const int fd = empty_tar.get();
  for (const std::string& digest : {"sha256:" + std::string(64, 'c'), std::string("../x")}) {
    const Request by_digest = AddLayerRequest{.blob = {.digest = digest}};
    expect_refused(by_digest, "digest " + digest, {&fd, 1});
    const Request by_diff = AddLayerRequest{.blob = {.diff_id = digest}};
    expect_refused(by_diff, "diff id " + digest, {&fd, 1});
  }
  expect_refused(AddLayerRequest{}, "no descriptor");
  const std::vector<int> many(50, fd);
  expect_refused(AddLayerRequest{}, "fifty descriptors", many);
  const linux::Fd nonsense = linux::make_sealed_memfd("layer", std::string(5000, 'x'));
  const int bad = nonsense.get();
  expect_refused(AddLayerRequest{}, "no archive", {&bad, 1});
  const linux::Fd folder = linux::open_file("/etc", O_RDONLY | O_DIRECTORY);
  const int etc = folder.get();
  expect_refused(AddLayerRequest{}, "a folder", {&etc, 1});
}

TEST_F(EscapeClient, MountsOfWhatIsNotAllowedAreRefused) {
  const auto with = [&](MountSpec mount, const std::string& what) {
    expect_refused_spec({.mounts = {std::move(mount)}}, what);
  };
  for (const std::string& name : kBadNames)
    with({.kind = MountKind::volume, .source = name, .target = "/data"}, "volume " + name);
  for (const char* path : {"/", "/etc", "/etc/shadow", "relative", "", "/proc/1/root", "/tmp/.."})
    with({.kind = MountKind::host, .source = path, .target = "/data"}, std::string("host ") + path);
  for (const char* target : {"/proc", "/proc/self", "/proc/../etc", "/sys/kernel", "/dev",
                             "/dev/null", "/../etc", "relative", "", "/", "/a/../../b", "/data/..",
                             "//proc/sys", "/./proc/sys", "/proc/./sys"}) {
    with({.kind = MountKind::memory, .target = target, .bytes = 4096},
         std::string("target ") + target);
  }
  with({.kind = MountKind::memory, .target = "/data", .bytes = 0}, "no bytes");
  with({.kind = MountKind::file, .target = "/data", .content = std::string(2 << 20, 'x')}, "large");
  SandboxSpec many;
  for (int i = 0; i < 200; ++i)
    many.mounts.push_back(
        {.kind = MountKind::memory, .target = fmt::format("/m{}", i), .bytes = 4096});
  expect_refused_spec(many, "two hundred mounts");
  SandboxSpec twice;
  twice.mounts.assign(2, {.kind = MountKind::memory, .target = "/data", .bytes = 4096});
  expect_refused_spec(twice, "twice the same");
}

TEST_F(EscapeClient, SpecsOfNonsenseAreRefused) {
  expect_refused_spec({.environment = {"=x"}}, "no name");
  expect_refused_spec({.environment = {std::string("A=\0b", 4)}}, "a zero byte");
  expect_refused_spec({.limits = {.memory_bytes = 1}}, "one byte");
  expect_refused(ForkRequest{.id = id_, .count = 0}, "no forks");
  expect_refused(ForkRequest{.id = id_, .count = 0xffffffff}, "all forks");
  network::Policy rules{.mode = network::Mode::listed};
  rules.allow.assign(10'000, network::Rule{});
  expect_refused(PolicyRequest{.id = id_, .policy = rules}, "ten thousand rules");
}

TEST_F(EscapeClient, GarbageIsAnsweredOrHungUpOn) {
  std::mt19937 random(4711);  // NOLINT: the same every time
  const std::vector<Request> seeds = {HelloRequest{}, CreateRequest{.spec = {.id = "Never"}},
                                      GetRequest{.id = "never"}, PutImageRequest{}};
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = encode(seeds[random() % seeds.size()]);
    bytes.resize(random() % (bytes.size() + 8));
    for (unsigned flips = random() % 4; flips > 0 && bytes.size() > 1; --flips)
      bytes[1 + random() % (bytes.size() - 1)] = static_cast<char>(random());
    // Never by chance what ends the runtime, or makes something.
    if (bytes.empty() || bytes[0] == 7) continue;
    if (bytes[0] == 2 && bytes.size() > 6) bytes[5] = '.';
    ask(bytes);
  }
  for (int number = 21; number < 256; ++number) {
    const Reply reply = ask(std::string(1, static_cast<char>(number)));
    EXPECT_TRUE(std::holds_alternative<Failed>(reply)) << number;
  }
}

TEST_F(EscapeClient, UninvitedDescriptorsAreClosed) {
  std::vector<linux::Fd> held;
  std::vector<int> fds;
  for (int i = 0; i < 150; ++i) {
    held.push_back(linux::open_file("/dev/null", O_RDONLY));
    fds.push_back(held.back().get());
  }
  for (int i = 0; i < 20; ++i) ask(encode(Request(HelloRequest{})), fds);
  // More than a channel takes: it may hang up on us, and on nobody else.
  for (int i = 0; i < 100; ++i) fds.push_back(held.front().get());
  try {
    ask(encode(Request(HelloRequest{})), fds);
  } catch (const Error&) {
    channel_ = connect_raw();
  }
  EXPECT_TRUE(std::holds_alternative<Hello>(ask(encode(Request(HelloRequest{})))));
}

TEST_F(EscapeClient, LargeMessagesEndTheConversationAtMost) {
  std::string large(3 << 20, '\xff');
  large[0] = 2;
  EXPECT_TRUE(std::holds_alternative<Failed>(ask(large)));
  EXPECT_THROW(channel_.send(std::string(64 << 20, 'x')), Error);
  channel_ = connect_raw();
  // A packet without the channel's own frame.
  for (int i = 0; i < 50; ++i) {
    const linux::Channel raw = connect_raw();
    const std::string bytes(static_cast<std::size_t>(i * 7), static_cast<char>(i));
    [[maybe_unused]] const ssize_t sent =
        ::send(raw.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  EXPECT_TRUE(std::holds_alternative<Hello>(ask(encode(Request(HelloRequest{})))));
}

TEST_F(EscapeClient, SilentClientsDoNotStopOthers) {
  std::vector<linux::Channel> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(connect_raw());
  EXPECT_TRUE(std::holds_alternative<Hello>(ask(encode(Request(HelloRequest{})))));
}

// Neither by the file's mode nor, were that wrong, by the daemon.
TEST_F(EscapeClient, OtherUsersAreRefused) {
  const std::string path = engine_->state_dir() + "/" + kSocketName;
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  const auto stranger_is_served = [&] {
    const linux::Fd folder = linux::open_file(engine_->state_dir(), O_PATH | O_DIRECTORY);
    const pid_t child = ::fork();
    if (child == 0) {
      bool served = false;
      try {
        if (::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
        linux::Channel channel = linux::connect_at(folder.get(), kSocketName);
        channel.send(encode(Request(HelloRequest{})), {}, Deadline::after(60s));
        served = channel.receive(Deadline::after(60s)).has_value();
      } catch (const std::exception&) {
      }
      ::_exit(served ? 0 : 1);
    }
    int code = 0;
    ::waitpid(child, &code, 0);
    return WEXITSTATUS(code) == 0;
  };
  EXPECT_FALSE(stranger_is_served());
  struct stat folder{};
  ::stat(engine_->state_dir().c_str(), &folder);
  ::chmod(engine_->state_dir().c_str(), 0755);
  ::chmod(path.c_str(), 0666);
  EXPECT_FALSE(stranger_is_served());
  ::chmod(path.c_str(), 0600);
  ::chmod(engine_->state_dir().c_str(), folder.st_mode & 0777);
}

}  // namespace
}  // namespace hearth::escape
