// Files that a sandbox made, in the hands of the host: links that lead out, names that are traps,
// folders that change while they are copied. Nothing of the host may be touched or seen.
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "escape/testing.h"

namespace hearth::escape {
namespace {

using namespace std::chrono_literals;
using runtime::MountKind;
using runtime::run_shell;

// A runtime of our own whose operator lets a folder be mounted.
class GenerousEngine {
 public:
  explicit GenerousEngine(const std::string& allowed) {
    linux::Pipe ready = linux::make_pipe();
    const std::string program = fmt::format("{}/hearth-runtime", std::getenv("HEARTH_BIN"));
    std::vector<std::string> words = {
        program, "--state-dir", state_.folder(), "--owner", "0", "--ready-fd",
        "9",     "--log-level", "error",         "--warm",  "0", "--allow-host-path",
        allowed};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ready.write.get(), 9);
    const int error =
        ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw_errno_text(error, "start hearth-runtime");
    ready.write.reset();
    char line[16];
    if (::read(ready.read.get(), line, sizeof line) <= 0) fail(Code::internal, "no runtime");
    client_ = std::make_unique<runtime::RuntimeClient>(state_.folder());
  }
  GenerousEngine(const GenerousEngine&) = delete;
  GenerousEngine& operator=(const GenerousEngine&) = delete;
  ~GenerousEngine() {
    client_->shut_down(/*destroy_all=*/true);
    ::waitpid(pid_, nullptr, 0);
  }
  runtime::RuntimeClient& runtime() { return *client_; }

 private:
  Canary state_;
  pid_t pid_ = 0;
  std::unique_ptr<runtime::RuntimeClient> client_;
};

class EscapeFiles : public EscapeTest {
 protected:
  // An image with whatever the script makes.
  std::string make_image(const std::string& script) {
    const std::string id = make_sandbox({});
    EXPECT_EQ(run_shell(runtime(), id, script).exited.status.code, 0);
    return runtime().commit(id, fmt::format("trap-{}", id)).name;
  }
  runtime::Outcome run_with(const runtime::SandboxSpec& spec, const std::string& script) {
    const std::string id = make_sandbox(spec);
    return run_shell(runtime(), id, script);
  }
};

// A mount's target in an image that made it a link: it is followed as inside, and ends inside.
TEST_F(EscapeFiles, MountTargetsThatAreLinksStayInside) {
  const Canary canary;
  const std::string image = make_image(fmt::format(
      "ln -s /../../../../../../{0} /data; ln -s {0} /direct; mkdir /real; ln -s ../../../real /up;"
      "ln -s /proc/1/root{0} /magic; ln -s loop /loop",
      canary.folder().string()));
  for (const char* target : {"/data", "/direct", "/up", "/magic", "/loop", "/data/deeper/still"}) {
    for (const MountKind kind : {MountKind::memory, MountKind::volume, MountKind::file}) {
      runtime::SandboxSpec spec{.image = image};
      spec.mounts.push_back({.kind = kind,
                             .source = "escape",
                             .target = target,
                             .bytes = 1 << 20,
                             .content = "secret"});
      try {
        run_with(spec, fmt::format("echo x > {}/canary; echo y > {}", target, target));
      } catch (const Error&) {
        // A link that leads nowhere is no place for a mount.
      }
      EXPECT_TRUE(canary.sings()) << target;
    }
  }
}

// So are the files that we write into every sandbox.
TEST_F(EscapeFiles, AnImageCannotLeadWhatIsWrittenAtItsStartElsewhere) {
  const Canary canary;
  const std::string where = canary.folder();
  const std::string image = make_image(fmt::format(
      "rm -rf /tmp /etc/hosts /etc/resolv.conf /home/user; ln -s {0} /tmp; ln -s {0}/canary "
      "/etc/hosts; ln -s {0}/canary /etc/resolv.conf; ln -s {0} /home/user",
      where));
  runtime::SandboxSpec spec{.image = image};
  if (!runtime().hello().network.empty()) spec.network = network::Policy{};
  const std::string id = runtime().create(spec).sandbox.id;
  run_shell(runtime(), id, "echo x > /etc/hosts; echo x > /tmp/canary; rm -rf /tmp/*");
  runtime().destroy(id);
  EXPECT_TRUE(canary.sings());
}

TEST_F(EscapeFiles, LinksInAVolumeLeadNowhere) {
  const Canary canary;
  runtime::SandboxSpec spec;
  spec.mounts.push_back({.kind = MountKind::volume, .source = "links", .target = "/data"});
  run_with(spec, fmt::format("ln -s {0}/canary /data/link; ln -s {0} /data/folder; mkdir /data/sub;"
                             "ln -s ../../../../../..{0} /data/sub/up; mkfifo /data/fifo; "
                             "cp /bin/true /data/setuid; chmod 6755 /data/setuid",
                             canary.folder().string()));
  // The next one sees links to what it has itself: nothing.
  EXPECT_EQ(run_with(spec, "cat /data/link /data/folder/canary /data/sub/up/canary").output, "");
  EXPECT_EQ(run_with(spec, "echo x > /data/folder/canary; echo x > /data/link").output, "");
  // Nobody of the host comes near a setuid program in there.
  struct stat folder{};
  ASSERT_EQ(::stat((engine_->state_dir() + "/runtime/volumes").c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0077, 0U);
  EXPECT_TRUE(canary.sings());
  destroy_others();
  runtime().remove_volume("links");
  EXPECT_TRUE(canary.sings());
}

// Everything that a tree can hold, and a copy that must not follow, open or run any of it.
TEST_F(EscapeFiles, HostileTreesAreCopiedAsTheyAre) {
  const Canary canary;
  const std::string script = fmt::format(
      "mkdir /h && cd /h && ln -s {0} out && ln -s {0}/canary file && ln -s /proc/self/root root "
      "&& "
      "mkfifo fifo && cp /bin/true suid && chmod 6755 suid && "
      "python3 -c 'import os,socket\n"
      "socket.socket(socket.AF_UNIX).bind(\"sock\")\n"
      "for n in [b\"\\xff\\xfe\", b\"a\\nb\", b\"-rf\", b\" \", b\"$(id)\", b\"n\"*255, "
      "b\".wh.x\", "
      "b\".wh..wh..opq\", b\"..x\", b\"\\x1b[2J\"]:\n"
      "  open(n, \"w\").close()\n"
      "d=b\".\"\n"
      "for i in range(50):\n"
      "  os.mkdir(b\"deep\"); os.chdir(b\"deep\")\n' && ln file hard && "
      "rm -rf /usr/share/doc && ln -s {0} /usr/share/doc && chmod 0 fifo",
      canary.folder().string());
  ASSERT_EQ(sh(script).exited.status.code, 0) << sh(script).error;

  const std::string image = runtime().commit(id_, "hostile").name;
  const std::vector<runtime::Sandbox> forks = runtime().fork(id_, 2);
  for (const runtime::Sandbox& fork : forks) {
    EXPECT_EQ(
        run_shell(runtime(), fork.id, "readlink /h/out; stat -c %F /h/fifo; cat /h/out/*").output,
        canary.folder().string() + "\nfifo\n");
    runtime().destroy(fork.id);
  }
  // A socket is nothing without its process.
  constexpr const char* kCount = "ls -I sock /h | wc -l";
  const std::string again = make_sandbox({.image = image});
  EXPECT_EQ(run_shell(runtime(), again, kCount).output, sh(kCount).output);
  EXPECT_TRUE(canary.sings());
  EXPECT_TRUE(runtime().remove_image("hostile"));
  EXPECT_TRUE(canary.sings());
}

// Somebody inside swaps a folder for a link, as fast as he can, while it is copied and deleted.
TEST_F(EscapeFiles, SwappingFoldersForLinksDuringACommitLeadsNowhere) {
  const Canary canary;
  ASSERT_EQ(
      sh(fmt::format("mkdir -p /swap/a /swap/b; for i in $(seq 300); do echo x > /swap/a/canary$i; "
                     "done; ln -s {} /swap/link",
                     canary.folder().string()))
          .exited.status.code,
      0);
  guest::Connection swapping(runtime().connect(id_));
  guest::ExecRequest request;
  request.command = {"python3", "-c",
                     "import os\nos.chdir('/swap')\nwhile True:\n  os.rename('a','t'); "
                     "os.rename('link','a'); os.rename('a','link'); os.rename('t','a')"};
  swapping.start(request, {});
  for (int i = 0; i < 5; ++i) {
    const std::string name = fmt::format("swapped-{}", i);
    runtime().commit(id_, name);
    const std::string copy = runtime().create({.image = name}).sandbox.id;
    EXPECT_EQ(run_shell(runtime(), copy, "grep -l untouched /swap/*/* 2>/dev/null").output, "");
    runtime().destroy(copy);
    for (const runtime::Sandbox& fork : runtime().fork(id_, 1)) runtime().destroy(fork.id);
    runtime().remove_image(name);
  }
  runtime().destroy(id_);
  EXPECT_TRUE(canary.sings());
}

// What the operator allowed, and what a link in it would make of that.
TEST(EscapeHostPath, LinksInAnAllowedFolderAreNotFollowed) {
  HEARTH_NEED_ROOT();
  const Canary secret;
  const Canary allowed;
  fs::create_directory(allowed.folder() / "sub");
  fs::create_directory_symlink(secret.folder(), allowed.folder() / "link");
  fs::create_directory_symlink(secret.folder(), allowed.folder() / "sub" / "link");
  fs::create_symlink(secret.file(), allowed.folder() / "file");
  constexpr unsigned kSomebody = 1000;  // the owner is root inside
  for (const fs::path& path : {allowed.folder(), allowed.file(), allowed.folder() / "sub"})
    ASSERT_EQ(::chown(path.c_str(), kSomebody, kSomebody), 0);
  GenerousEngine engine(allowed.folder());
  const auto with = [&](const std::string& source) {
    runtime::SandboxSpec spec;
    spec.mounts.push_back({.kind = MountKind::host, .source = source, .target = "/data"});
    const std::string id = engine.runtime().create(spec).sandbox.id;
    const std::string seen =
        run_shell(engine.runtime(), id,
                  "cat /data /data/canary /data/link/canary /data/sub/link/canary /data/file; "
                  "echo x > /data/link/canary; echo x > /data/file; echo x > /data/../canary")
            .output;
    engine.runtime().destroy(id);
    return seen;
  };
  const std::string here = allowed.folder();
  EXPECT_EQ(with(here), "untouched");  // its own file, and none of the links'
  for (const char* way : {"/link", "/sub/link", "/file", "/..", "/../", "/sub/../..",
                          "/link/canary", "/sub/../../"}) {
    EXPECT_THROW(with(here + way), Error) << way;
  }
  EXPECT_THROW(with(here + "-other"), Error);
  EXPECT_TRUE(secret.sings());
}

// A folder of root's: a program that root inside makes setuid there would make anybody root here.
TEST(EscapeHostPath, AFolderOfRootsGetsNoSetuidPrograms) {
  HEARTH_NEED_ROOT();
  const Canary allowed;
  GenerousEngine engine(allowed.folder());
  runtime::SandboxSpec spec;
  spec.mounts.push_back({.kind = MountKind::host, .source = allowed.folder(), .target = "/data"});
  try {
    const std::string id = engine.runtime().create(spec).sandbox.id;
    run_shell(engine.runtime(), id, "cp /bin/true /data/setuid; chmod 6755 /data/setuid");
    engine.runtime().destroy(id);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::forbidden) << error.what();
  }
  struct stat status{};
  if (::stat((allowed.folder() / "setuid").c_str(), &status) != 0) return;
  EXPECT_FALSE(status.st_uid == 0 && (status.st_mode & S_ISUID) != 0) << "a setuid root program";
}

}  // namespace
}  // namespace hearth::escape
