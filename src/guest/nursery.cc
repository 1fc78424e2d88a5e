#include "guest/nursery.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/error.h"
#include "guest/boot.h"
#include "guest/confine.h"
#include "guest/server.h"
#include "guest/stage.h"
#include "guest/sudo_door.h"
#include "guest/sysctls.h"
#include "linux/capabilities.h"
#include "linux/clone.h"

namespace hearth::guest {
namespace {

constexpr std::uint64_t kNamespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
                                      CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

// The kernel takes the cgroup of a birth for the root of a cgroup namespace that is born with it,
// and nobody below such a root may let others be born outside it (mount option nsdelegate). Where
// commands are born beside the guest, the spawner therefore keeps the nursery's namespace, and the
// others make their own.
std::uint64_t namespaces_for(const ShellOrder& order, bool joined) {
  constexpr std::uint64_t kShared = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
  std::uint64_t namespaces = kNamespaces;
  if (order.command_cgroup) namespaces &= ~std::uint64_t{CLONE_NEWCGROUP};
  if (joined) namespaces &= ~kShared;
  return namespaces;
}

std::string make_uuid() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw_errno("get random bytes");
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);  // version 4
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

// What arrives with an order, in its order.
struct ShellParts {
  linux::Channel boot;
  linux::Fd listen;
  SpawnPlace place;
  linux::Fd guest_cgroup;
};

ShellParts take_parts(const ShellOrder& order, std::vector<linux::Fd> fds) {
  const std::size_t wanted =
      2 + order.join_count + (order.guest_cgroup ? 1 : 0) + (order.command_cgroup ? 1 : 0);
  if (fds.size() != wanted)
    fail(Code::invalid, "an order with {} descriptors instead of {}", fds.size(), wanted);
  auto next = fds.begin();
  ShellParts parts;
  parts.boot = linux::Channel(std::move(*next++));
  parts.listen = std::move(*next++);
  for (std::uint32_t i = 0; i < order.join_count; ++i)
    parts.place.join_files.push_back(std::move(*next++));
  if (order.guest_cgroup) parts.guest_cgroup = std::move(*next++);
  if (order.command_cgroup) parts.place.cgroup = std::move(*next++);
  return parts;
}

// Until now the newborn's ids are not mapped, it is nobody with all capabilities. The raw calls:
// there is one thread, and glibc's way of telling others is not for a copy made behind its back.
void take_identity() {
  if (::syscall(SYS_setresgid, 0, 0, 0) != 0 || ::syscall(SYS_setgroups, 0, nullptr) != 0 ||
      ::syscall(SYS_setresuid, 0, 0, 0) != 0) {
    throw_errno("become root of the user namespace");
  }
}

std::vector<int> borrow(std::span<const linux::Fd> fds) {
  std::vector<int> numbers;
  for (const linux::Fd& fd : fds) numbers.push_back(fd.get());
  return numbers;
}

// A guest has a few for every command and every connection of its surfaces. Commands get limits of
// their own.
void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) throw_errno("ask for the limit of descriptors");
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) throw_errno("raise the limit of descriptors");
}

// When the machine itself runs out of memory, what is in sandboxes goes before what keeps them. It
// is inherited. Where the kernel does not let us, it is as it was.
void give_way_without_memory() noexcept {
  constexpr int kScore = 100;  // as E2B's commands have it
  try {
    constexpr const char* kPath = "/proc/self/oom_score_adj";
    if (std::stoi(linux::read_file(kPath)) >= kScore) return;  // whoever started us had his reasons
    linux::write_all(linux::open_file(kPath, O_WRONLY).get(), std::to_string(kScore));
  } catch (const std::exception&) {
    return;
  }
}

class Shell {
 public:
  Shell(ShellParts parts, const NurseryConfig& config, const OpenDoors& open_doors)
      : parts_(std::move(parts)), config_(config), open_doors_(open_doors) {}

  // From birth to the end of the sandbox.
  void live() {
    take_identity();
    parts_.guest_cgroup.reset();
    if (!config_.joined) bring_up_loopback();
    build_stage(make_uuid());
    if (const int error = linux::limit_bounding_set(capabilities()); error != 0)
      throw_errno_text(error, "limit what can be had by executing programs");
    const bool born_without_cgroup_namespace = static_cast<bool>(parts_.place.cgroup);
    Spawner spawner(std::move(parts_.place), capabilities());
    if (born_without_cgroup_namespace && ::unshare(CLONE_NEWCGROUP) != 0)
      throw_errno("make a cgroup namespace");
    parts_.boot.send(kReady);

    auto message = parts_.boot.receive();
    if (!message) return;
    const Assignment assignment = parse_assignment(message->bytes);
    // Before we give up our own rights: it may have more than we are left with.
    spawner.set_cpus(assignment.cpus);
    linux::Fd stage = take_on(assignment, message->fds);
    ServerOptions options;
    options.listen = std::move(parts_.listen);
    if (assignment.client) options.first_client = linux::Channel(std::move(message->fds.back()));
    message.reset();
    options.boot = std::move(parts_.boot);
    options.stage = std::move(stage);
    options.limits = assignment.ulimits;
    options.rights = assignment.rights;
    options.doors = make_doors(assignment.surfaces);
    if (!assignment.sudoers.empty()) options.sudo_door = open_sudo_door();
    options.sudoers = assignment.sudoers;
    options.open_doors = open_doors_;
    Core core({.environment = assignment.environment,
               .user = assignment.user,
               .directory = assignment.directory,
               .token = assignment.token});
    Server(std::move(options), core, spawner).run();
  }

  void complain(const char* why) noexcept {
    try {
      if (parts_.boot) parts_.boot.send(why);
    } catch (const Error&) {
      // The runtime is gone, and so are we.
    }
  }

 private:
  linux::CapabilitySet capabilities() const {
    return linux::CapabilitySet::from_bits(config_.capabilities);
  }

  linux::Fd take_on(const Assignment& assignment, std::span<const linux::Fd> fds) {
    const std::size_t layers = assignment.layers + assignment.usr_layers;
    const std::size_t before_attachments = layers + (assignment.disk ? 1 : 0);
    const std::size_t mounts = before_attachments + assignment.attachments.size();
    if (fds.size() != mounts + (assignment.client ? 1 : 0))
      fail(Code::internal, "an assignment with {} descriptors", fds.size());
    const std::vector<int> numbers = borrow(fds);
    const std::span all(numbers);
    linux::Fd stage =
        enter_root({.layers = all.first(assignment.layers),
                    .usr_layers = all.subspan(assignment.layers, assignment.usr_layers),
                    .attachments = assignment.attachments,
                    .attachment_fds = all.subspan(before_attachments),
                    .disk_fd = assignment.disk ? all[layers] : -1,
                    .disk_bytes = assignment.disk_bytes});
    name_host({.hostname = assignment.hostname,
               .hosts = assignment.hosts,
               .resolv_conf = assignment.resolv_conf});
    set_sysctls(assignment.sysctls);
    if (!assignment.sudoers.empty()) link_sudo();
    if (assignment.read_only_root) make_root_read_only(assignment);
    confine(capabilities(), config_.closing_filter);
    return stage;
  }

  ShellParts parts_;
  const NurseryConfig& config_;
  const OpenDoors& open_doors_;
};

class Nursery {
 public:
  Nursery(linux::Channel channel, OpenDoors open_doors)
      : channel_(std::move(channel)), open_doors_(std::move(open_doors)) {}

  void run() {
    const auto first = channel_.receive();
    if (!first) return;
    try {
      config_ = parse_nursery_config(first->bytes);
      prepare();
    } catch (const Error& error) {
      return channel_.send(error.what());
    }
    channel_.send(kReady);
    while (auto message = channel_.receive()) {
      try {
        const linux::Forked newborn = give_birth(std::move(*message));
        const int pidfd = newborn.pidfd.fd();
        channel_.send(fmt::to_string(newborn.pid), {&pidfd, 1});
      } catch (const Error& error) {
        channel_.send(error.what());
      }
    }
  }

 private:
  void prepare() {
    ::prctl(PR_SET_NAME, "hearth-guest", 0, 0, 0);
    allow_many_descriptors();
    give_way_without_memory();
    processes_ = linux::open_file("/proc", O_PATH | O_DIRECTORY);
    make_nursery_root(config_.joined);
    // Whoever holds a pidfd learns of an end; there is nobody here to wait for it.
    ::signal(SIGCHLD, SIG_IGN);
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throw_errno("set no_new_privs");
    install_filter(config_.common_filter);
    // Enough to map a newborn's ids; what is born in a user namespace has all rights there.
    if (const int error = linux::limit_capabilities({CAP_SETUID, CAP_SETGID}); error != 0)
      throw_errno_text(error, "give up capabilities");
  }

  linux::Forked give_birth(linux::Message message) {
    const ShellOrder order = parse_shell_order(message.bytes);
    ShellParts parts = take_parts(order, std::move(message.fds));
    linux::Pipe go = linux::make_pipe();
    linux::Forked newborn =
        linux::fork_into(namespaces_for(order, config_.joined), parts.guest_cgroup.get());
    if (newborn.pid == 0) become_shell(std::move(parts), std::move(go));
    linux::write_id_maps(processes_.get(), newborn.pid, order.ids);
    linux::write_all(go.write.get(), "g");
    return newborn;
  }

  // `go` closes without a word when something went wrong meanwhile.
  [[noreturn]] void become_shell(ShellParts parts, linux::Pipe go) {
    channel_ = linux::Channel();
    processes_.reset();
    go.write.reset();
    char byte = 0;
    const bool mapped = ::read(go.read.get(), &byte, 1) == 1;
    go.read.reset();
    ::signal(SIGCHLD, SIG_DFL);
    Shell shell(std::move(parts), config_, open_doors_);
    int status = 1;
    try {
      if (mapped) shell.live();
      status = 0;
    } catch (const std::exception& error) {
      shell.complain(error.what());
    }
    ::_exit(status);
  }

  linux::Channel channel_;
  OpenDoors open_doors_;
  NurseryConfig config_;
  linux::Fd processes_;  // the host's /proc: not a newborn's
};

}  // namespace

void run_nursery(linux::Channel channel, OpenDoors open_doors) {
  Nursery(std::move(channel), std::move(open_doors)).run();
}

}  // namespace hearth::guest
