// Volumes that a sandbox gets when it becomes somebody's.
#include <sys/stat.h>

#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernel/testing.h"

namespace hearth::runtime {
namespace {

class LateVolume : public SandboxTest {
 protected:
  void TearDown() override {
    SandboxTest::TearDown();
    if (!engine_) return;
    for (const Volume& volume : runtime().list_volumes()) runtime().remove_volume(volume.name);
  }

  // What it complains of, or nothing.
  std::string give(const std::string& target, const std::string& user = "",
                   const std::string& volume = "data") {
    Belongings belongings;
    belongings.configuration.user = user;
    belongings.volumes = {{.source = volume, .target = target}};
    try {
      runtime().configure(id_, belongings);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  std::string mounts() { return sh("grep -c ' /data\\| /a/b\\| /tmp/x' /proc/mounts").output; }
};

TEST_F(LateVolume, IsThereBeforeTheAnswerAndOutlivesTheSandbox) {
  EXPECT_EQ(give("/a/b/data"), "");
  EXPECT_EQ(sh("echo kept > /a/b/data/file; stat -c %u:%a /a/b/data /a/b").output,
            "0:755\n0:755\n");
  EXPECT_THROW(runtime().remove_volume("data"), Error);  // it is used
  engine_->kill();
  engine_->start();
  EXPECT_THROW(runtime().remove_volume("data"), Error);
  EXPECT_EQ(sh("cat /a/b/data/file").output, "kept\n");
  runtime().destroy(id_);

  id_ = runtime().create({}).sandbox.id;
  Belongings again;
  again.hostname = "mine";
  again.volumes = {{.source = "data", .target = "/data", .read_only = true},
                   {.source = "other", .target = "/data/within"}};
  // A folder can be made in no volume that is read-only.
  EXPECT_THROW(runtime().configure(id_, again), Error);
  EXPECT_EQ(mounts(), "0\n");
  EXPECT_NE(sh("hostname").output, "mine\n");
  again.volumes.pop_back();
  runtime().configure(id_, again);
  EXPECT_EQ(sh("cat /data/file; touch /data/x 2>/dev/null || echo no; hostname").output,
            "kept\nno\nmine\n");
}

TEST_F(LateVolume, ComesWithTheRestOrNotAtAll) {
  EXPECT_NE(give("/data", "nobody-of-that-name"), "");
  EXPECT_EQ(mounts(), "0\n");
  runtime().remove_volume("data");  // nobody uses it
  EXPECT_EQ(give("/data"), "");
  EXPECT_EQ(mounts(), "1\n");
  // Once somebody's, nothing of anybody else comes near it.
  EXPECT_EQ(give("/tmp/x", "", "others"), "the sandbox was configured before, and is somebody's");
  engine_->kill();
  engine_->start();
  EXPECT_EQ(give("/tmp/x", "", "others"), "the sandbox was configured before, and is somebody's");
  for (const Volume& volume : runtime().list_volumes()) EXPECT_NE(volume.name, "others");
}

TEST_F(LateVolume, FollowsNoLinkAndTouchesNothingOfTheKernels) {
  sh("ln -s / /root-link; ln -s /proc/1/root /magic; ln -s /etc /tmp/x; touch /file; mkdir /dir");
  for (const char* target :
       {"/root-link/data", "/magic/data", "/tmp/x", "/tmp/x/data", "/file", "/file/data"}) {
    EXPECT_NE(give(target).find("has a link or a file in it"), std::string::npos) << target;
  }
  for (const char* target :
       {"/proc", "/proc/self", "/sys/kernel", "/dev/pts", "relative", "/", "/a/../b", "/dir/./x"}) {
    EXPECT_NE(give(target), "") << target;
  }
  EXPECT_EQ(sh("grep -c data /proc/mounts").output, "0\n");
  Belongings belongings;
  belongings.volumes = {{.kind = MountKind::host, .source = "/etc", .target = "/dir"}};
  EXPECT_THROW(runtime().configure(id_, belongings), Error);
  EXPECT_EQ(give("/dir/data"), "");
}

// Whatever is renamed under its feet: it is mounted in the sandbox, or not at all.
TEST_F(LateVolume, LandsInsideWhateverIsRenamedMeanwhile) {
  struct stat before{};
  ASSERT_EQ(::stat("/", &before), 0);
  guest::ExecRequest request;
  request.command = {"python3", "-c",
                     "import os\n"
                     "os.makedirs('/a/b/c', exist_ok=True); os.makedirs('/z', exist_ok=True)\n"
                     "os.symlink('/proc', '/link')\n"
                     "open('/tmp/racing', 'w')\n"
                     "while True:\n"
                     "  for one, other in (('/a/b', '/z/b'), ('/link', '/a/b'), ('/a/b', '/link'), "
                     "('/z/b', '/a/b')):\n"
                     "    try: os.rename(one, other)\n"
                     "    except OSError: pass\n"};
  request.detached = true;
  const HostState host = look_at_host();
  guest::Connection(runtime().connect(id_)).start(request, {});
  sh("for i in $(seq 500); do test -e /tmp/racing && break; sleep 0.02; done");
  bool landed = false;
  for (int i = 0; i < 200 && !landed; ++i) landed = give("/a/b/c").empty();
  EXPECT_EQ(sh("grep -c 'proc/.*ext4\\|/proc/[^ ]*data' /proc/mounts").output, "0\n");
  EXPECT_EQ(look_at_host().mounts, host.mounts);
  EXPECT_LE(std::stoi(sh("grep -c volumes /proc/self/mountinfo").output), landed ? 1 : 0);
}

}  // namespace
}  // namespace hearth::runtime
