// hearth-runtime: the one privileged process. Makes and unmakes sandboxes for the engine, which
// runs as an ordinary user and asks over a unix socket. Started by `hearth up`.
//
// Threads: the main thread accepts connections; one thread for each connection; one waits for
// sandboxes that end by themselves; one makes shells ahead; one waits for signals. Processes: a few
// nurseries (guest/nursery.h), which sandboxes are born from.
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/on_failure.h"
#include "linux/capabilities.h"
#include "linux/files.h"
#include "linux/mounts.h"
#include "linux/seccomp_policy.h"
#include "runtime/daemon.h"
#include "runtime/dead_engines.h"
#include "runtime/linux_runtime.h"

namespace {

using namespace hearth;
using namespace std::chrono_literals;

constexpr const char* kUsage =
    "usage: hearth-runtime --state-dir DIR --owner UID [--ready-fd N] [--log-level LEVEL] "
    "[--log-format FORMAT] [--warm N]\n"
    "\n"
    "Makes and unmakes sandboxes for the engine; 'hearth up' starts it. Needs root.\n"
    "  --state-dir DIR     where the socket and the state are\n"
    "  --owner UID         the user, besides root, whom it serves\n"
    "  --ready-fd N        descriptor that gets a line 'ready' when it serves\n"
    "  --log-level LEVEL   debug, info, warning or error\n"
    "  --log-format FORMAT text or json\n"
    "  --warm N            shells to keep ready for the next sandboxes [16]\n"
    "  --network on|off    links of their own for sandboxes [on]\n"
    "  --image-quota MIB   what images may take up on the disk [no limit]\n"
    "  --allow-host-path DIR  a folder that may be mounted into sandboxes; may be repeated\n"
    "  --version           print the version\n";

struct Options {
  std::string state_dir;
  unsigned owner = 0;
  int ready_fd = -1;
  log::Level level = log::Level::info;
  log::Format format = log::Format::text;
  unsigned warm = 16;
  bool network = true;
  std::uint64_t image_quota_mib = 0;
  std::vector<std::string> host_paths;
};

std::int64_t parse_number(const std::string& name, const std::string& text,
                          std::int64_t most = INT32_MAX) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > most) {
    fail(Code::invalid, "{} wants a number up to {}, not '{}'", name, most, text);
  }
  return value;
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 >= argc) fail(Code::invalid, "{} needs a value\n{}", name, kUsage);
    const std::string value = argv[i + 1];
    if (name == "--state-dir")
      options.state_dir = value;
    else if (name == "--owner")
      options.owner = static_cast<unsigned>(parse_number(name, value));
    else if (name == "--ready-fd")
      options.ready_fd = static_cast<int>(parse_number(name, value));
    else if (name == "--log-level")
      options.level = log::parse_level(value);
    else if (name == "--log-format")
      options.format = log::parse_format(value);
    else if (name == "--warm")
      options.warm = static_cast<unsigned>(parse_number(name, value));
    else if (name == "--network")
      options.network = value != "off";
    else if (name == "--image-quota")
      options.image_quota_mib =
          static_cast<std::uint64_t>(parse_number(name, value, std::int64_t{1} << 40));
    else if (name == "--allow-host-path")
      options.host_paths.push_back(std::filesystem::canonical(value));
    else
      fail(Code::invalid, "there is no option '{}'\n{}", name, kUsage);
  }
  if (options.state_dir.empty()) fail(Code::invalid, "--state-dir is missing\n{}", kUsage);
  return options;
}

// Ours alone, whoever owns the folder around it: a folder that somebody else put there instead is
// refused, because we are about to trust what is in it.
linux::Fd open_private_folder(int dir_fd, const std::string& name) {
  if (::mkdirat(dir_fd, name.c_str(), 0700) != 0 && errno != EEXIST)
    throw_errno("make folder '{}'", name);
  linux::Fd folder = linux::open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  struct stat status{};
  if (::fstat(folder.get(), &status) != 0) throw_errno("stat folder '{}'", name);
  if (status.st_uid != 0 || (status.st_mode & 077) != 0) {
    fail(Code::forbidden, "folder '{}' is not root's alone; remove it", name);
  }
  return folder;
}

// Where files live in memory and until the next boot; the folder that lasts where there is no such
// place.
std::string find_memory(const std::string& otherwise) {
  for (const char* path : {"/run", "/dev/shm"}) {
    struct statfs status{};
    if (::statfs(path, &status) == 0 && status.f_type == TMPFS_MAGIC) return path;
  }
  return otherwise;
}

// Held for life. An earlier runtime may still be on its way out.
linux::Fd lock_folder(int folder_fd) {
  const Deadline deadline = Deadline::after(10s);
  while (true) {
    if (linux::Fd lock = runtime::try_lock_folder(folder_fd)) return lock;
    if (deadline.passed()) fail(Code::conflict, "another hearth-runtime serves this state folder");
    std::this_thread::sleep_for(20ms);
  }
}

bool is_removed(int folder_fd) {
  struct stat status{};
  return ::fstat(folder_fd, &status) == 0 && status.st_nlink == 0;
}

// All that engines of this machine note in memory, and our part of it.
struct Corner {
  linux::Fd memory;
  linux::Fd all_engines;
  linux::Fd folder;
  linux::Fd lock;  // held for life
};

Corner open_corner(const std::string& memory_path, const std::string& tag) {
  Corner corner;
  corner.memory = linux::open_file(memory_path, O_RDONLY | O_DIRECTORY);
  corner.all_engines = open_private_folder(corner.memory.get(), "hearth");
  corner.folder = open_private_folder(corner.all_engines.get(), tag);
  return corner;
}

// Whoever ends or sweeps meanwhile may take the folders away that we have just made.
Corner claim_corner(const std::string& memory_path, const std::string& tag) {
  constexpr int kTries = 10;
  for (int tries = 1;; ++tries) {
    try {
      Corner corner = open_corner(memory_path, tag);
      corner.lock = lock_folder(corner.folder.get());
      if (!is_removed(corner.folder.get())) return corner;
      fail(Code::not_found, "the engine's folder in '{}' went away", memory_path);
    } catch (const Error& error) {
      if (error.code() != Code::not_found || tries == kTries) throw;
    }
  }
}

// The note goes last: what stays is found by it. Folders that are not empty stay.
void leave_corner(const Corner& corner, const std::string& tag) {
  if (::unlinkat(corner.folder.get(), "sandboxes", AT_REMOVEDIR) != 0 && errno != ENOENT) return;
  linux::remove_all_at(corner.all_engines.get(), tag);
  ::unlinkat(corner.memory.get(), "hearth", AT_REMOVEDIR);
}

// Before mounts are out of sight.
void sweep_others(const std::string& memory_path) {
  const linux::Fd memory = linux::open_file(memory_path, O_RDONLY | O_DIRECTORY);
  runtime::sweep_dead_engines(open_private_folder(memory.get(), "hearth").get());
}

// Returns when it is time to end: a signal has come; or nobody can reach us any more, because the
// folder with our socket was removed and nobody is connected. Then everything goes with us.
void wait_for_end(const sigset_t& ends, int folder_fd, const runtime::Daemon& daemon,
                  runtime::LinuxRuntime& runtime) {
  constexpr timespec kBetweenLooks{.tv_sec = 5, .tv_nsec = 0};
  while (true) {
    if (::sigtimedwait(&ends, nullptr, &kBetweenLooks) > 0) return;
    if (daemon.connections() != 0 || !is_removed(folder_fd)) continue;
    log::warning("the state folder was removed, and nobody is connected: everything ends");
    try {
      runtime.destroy_all();
    } catch (const Error& error) {
      log::error("something stays behind", {{"error", error.what()}});
    }
    return;
  }
}

// The same engine finds its cgroups again, two engines never meet: from the folder itself, which
// keeps its inode for as long as it exists, whatever path leads to it.
std::string tag_of(int folder_fd) {
  struct stat status{};
  if (::fstat(folder_fd, &status) != 0) throw_errno("stat the state folder");
  return fmt::format("{:x}-{:x}", status.st_dev, status.st_ino);
}

// Signals are for one thread only; all others inherit the mask.
sigset_t block_signals() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ends, signal);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return ends;
}

// For us, and because sandboxes can have no more than we do.
void raise_open_files_limit() {
  // The kernel's own default for the most there can be (fs.nr_open).
  constexpr rlim_t kWanted = 1 << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t most = std::max(limit.rlim_max, kWanted);
  const rlimit raised{.rlim_cur = most, .rlim_max = most};
  if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Gives up what making sandboxes does not take, for good and for all that we start. Before there
// are threads: each has its own. (SYS_PTRACE opens namespaces of sandboxes that are being made.)
void confine() {
  const linux::CapabilitySet keep = {
      CAP_CHOWN,     CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER,
      CAP_FSETID,    CAP_KILL,         CAP_MKNOD,           CAP_NET_ADMIN,
      CAP_SETFCAP,   CAP_SETGID,       CAP_SETPCAP,         CAP_SETUID,
      CAP_SYS_ADMIN, CAP_SYS_CHROOT,   CAP_SYS_PTRACE,      CAP_SYS_RESOURCE};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throw_errno("set no_new_privs");
  if (const int error = linux::limit_capabilities(keep); error != 0)
    throw_errno_text(error, "give up capabilities");
  const auto filter = linux::compile(linux::maker_seccomp_policy());
  if (const int error = linux::install_filter(filter); error != 0)
    throw_errno_text(error, "install the seccomp filter");
}

void run(const Options& options) {
  if (::geteuid() != 0)
    fail(Code::forbidden, "hearth-runtime needs root: it makes namespaces, mounts and cgroups");
  ::setsid();
  ::umask(022);
  raise_open_files_limit();
  const sigset_t ends = block_signals();

  const std::string state_dir = std::filesystem::canonical(options.state_dir);
  const auto programs = std::filesystem::canonical("/proc/self/exe").parent_path();
  const linux::Fd state = linux::open_file(state_dir, O_RDONLY | O_DIRECTORY);
  const linux::Fd folder = open_private_folder(state.get(), "runtime");
  const linux::Fd lock = lock_folder(folder.get());
  const std::string tag = tag_of(folder.get());

  // Before anything of ours is there: a folder that is gone may have had this inode, and so our
  // tag.
  const std::string memory_path = find_memory(state_dir + "/runtime");
  sweep_others(memory_path);
  const Corner corner = claim_corner(memory_path, tag);
  bool is_clean = true;
  // At every end: it is never released.
  const OnFailure leave([&] {
    if (is_clean) leave_corner(corner, tag);
  });
  runtime::note_home(corner.folder.get(), folder.get(), state_dir + "/runtime");
  // Cgroups are opened before mounts are out of sight: theirs are not kept.
  linux::CgroupTree cgroups = linux::CgroupTree::open("hearth/" + tag);
  linux::CgroupTree same_cgroups = linux::CgroupTree::open("hearth/" + tag);
  OnFailure undo([&] {
    is_clean = false;
    runtime::undo_start(corner.folder.get(), tag, same_cgroups, options.network);
    is_clean = true;
  });
  std::vector<std::string> kept = {"/proc",   "/sys",      "/dev",  "/usr",
                                   state_dir, memory_path, programs};
  kept.insert(kept.end(), options.host_paths.begin(), options.host_paths.end());
  linux::make_slim_mount_namespace(kept);
  const linux::Fd slim_state = linux::open_file(state_dir, O_RDONLY | O_DIRECTORY);
  const linux::Fd slim_folder = open_private_folder(slim_state.get(), "runtime");
  const Corner slim_corner = open_corner(memory_path, tag);
  confine();
  runtime::LinuxRuntime runtime({.folder_fd = slim_folder.get(),
                                 .memory_folder_fd = slim_corner.folder.get(),
                                 .guest_program = programs / "hearth-guest",
                                 .unpack_program = programs / "hearth-unpack",
                                 .tag = tag,
                                 .warm = options.warm,
                                 .network = options.network,
                                 .image_quota_bytes = options.image_quota_mib << 20,
                                 .host_paths = options.host_paths},
                                std::move(cgroups));
  undo.release();
  // At every end, once nobody asks for anything any more: it is never released.
  const OnFailure end_runtime([&] {
    is_clean = false;
    try {
      runtime.leave_nothing_of_nobody();
      is_clean = true;
    } catch (const Error& error) {
      log::warning("something stays behind", {{"error", error.what()}});
    }
  });
  const linux::Fd listen = linux::listen_at(slim_state.get(), runtime::kSocketName);
  if (::fchownat(slim_state.get(), runtime::kSocketName, options.owner, static_cast<gid_t>(-1),
                 AT_SYMLINK_NOFOLLOW) != 0) {
    throw_errno("give the socket to user {}", options.owner);
  }

  runtime::Daemon daemon(runtime, listen.get(), options.owner);
  std::jthread signals([&] {
    wait_for_end(ends, slim_folder.get(), daemon, runtime);
    daemon.stop();
  });
  // At every end, also when whoever started us is gone before we are ready: it is never released.
  const OnFailure end_signals([] { ::kill(::getpid(), SIGTERM); });
  if (options.ready_fd >= 0) {
    linux::write_all(options.ready_fd, "ready\n");
    ::close(options.ready_fd);
  }
  daemon.run();
  ::unlinkat(slim_state.get(), runtime::kSocketName, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::puts("hearth-runtime " HEARTH_VERSION);
    return 0;
  }
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  try {
    const Options options = parse_options(argc, argv);
    log::configure(options.level, options.format);
    run(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hearth-runtime: %s\n", error.what());
    return 1;
  }
}
