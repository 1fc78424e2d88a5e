#include "runtime/disks.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/on_failure.h"
#include "linux/loop_device.h"
#include "linux/mounts.h"
#include "linux/spawn_rules.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;

// What the file system needs for itself.
constexpr std::uint64_t kLeastBytes = std::uint64_t{4} << 20;
// Beyond it the empty tables alone take up gigabytes.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
// For the slowest disk.
constexpr Duration kFormatPatience = 60s;

constexpr std::uint64_t kFlags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

enum class Lasting { no, yes };

std::string find_formatter() {
  for (const char* path : {"/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  fail(Code::unavailable,
       "there is no mkfs.ext4 to make a disk with; Debian's package e2fsprogs has it");
}

// Its file is descriptor 3.
std::vector<std::string> format_command(Lasting lasting) {
  std::vector<std::string> words = {"mkfs.ext4", "-q", "-F", "-b", "4096",
                                    // Nobody of the host's is waiting for its share.
                                    "-m", "0",
                                    // Twice as many files as usual: package managers need them.
                                    "-i", "8192",
                                    // A new file is empty: nothing to discard, nothing to zero.
                                    "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1"};
  // What does not outlive the machine's next start needs no journal.
  if (lasting == Lasting::no) words.insert(words.end(), {"-O", "^has_journal"});
  words.emplace_back("/proc/self/fd/3");
  return words;
}

pid_t start_formatter(int file_fd, int error_fd, Lasting lasting) {
  const std::string program = find_formatter();
  linux::SpawnRules rules;
  rules.connect(-1, STDIN_FILENO);
  rules.connect(-1, STDOUT_FILENO);
  rules.connect(error_fd, STDERR_FILENO);
  rules.connect(file_fd, 3);
  rules.close_from(4);
  std::vector<std::string> words = format_command(lasting);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::string language = "LC_ALL=C";
  char* const environment[] = {language.data(), nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, program.c_str(), rules.actions(), rules.attributes(),
                                  arguments.data(), environment);
  if (error != 0) throw_errno_text(error, fmt::format("start '{}'", program));
  return pid;
}

// What it complains of, on one line; the end of it is the end of the program.
std::string read_complaint(int fd, Deadline deadline) {
  constexpr std::size_t kMost = 400;
  std::string text;
  std::array<char, 256> piece{};
  while (true) {
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, deadline.poll_milliseconds());
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return text;
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got <= 0) break;
    if (text.size() < kMost) text.append(piece.data(), static_cast<std::size_t>(got));
  }
  while (text.ends_with('\n')) text.pop_back();
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

bool is_full(int file_fd) {
  // What the tables of a small file system take up.
  constexpr std::uint64_t kNeeded = std::uint64_t{1} << 20;
  struct statvfs system{};
  return ::fstatvfs(file_fd, &system) == 0 &&
         std::uint64_t{system.f_bavail} * system.f_frsize < kNeeded;
}

void format(int file_fd, Lasting lasting) {
  linux::Pipe complaints = linux::make_pipe();
  const pid_t pid = start_formatter(file_fd, complaints.write.get(), lasting);
  complaints.write.reset();
  const Deadline deadline = Deadline::after(kFormatPatience);
  const std::string complaint = read_complaint(complaints.read.get(), deadline);
  if (deadline.passed()) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (deadline.passed()) fail(Code::timeout, "formatting a disk took too long");
  if (status == 0) return;
  fail(is_full(file_fd) ? Code::exhausted : Code::internal, "format a disk: mkfs.ext4 says '{}'",
       complaint);
}

linux::Fd make_file(int folder_fd, const std::string& name, std::uint64_t bytes) {
  linux::Fd file = linux::open_at(folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  OnFailure remove([&] { ::unlinkat(folder_fd, name.c_str(), 0); });
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    throw_errno("make a disk of {} bytes", bytes);
  remove.release();
  return file;
}

PrivateDisk make_nameless_disk(int folder_fd, std::uint64_t bytes) {
  const std::string name = random_hex(8);
  const linux::Fd file = make_file(folder_fd, name, bytes);
  // A crash before this leaves an empty file, which the next start removes.
  if (::unlinkat(folder_fd, name.c_str(), 0) != 0) throw_errno("take a disk's name away");
  format(file.get(), Lasting::no);
  const linux::LoopDevice loop = linux::attach_loop_device(file.get(), "hearth sandbox " + name);
  PrivateDisk disk;
  disk.mount = linux::make_detached_mount(
      "ext4", {{"source", loop.path}, {"noinit_itable", ""}, {"nobarrier", ""}}, kFlags);
  struct stat status{};
  if (::fstat(disk.mount.get(), &status) != 0) throw_errno("look at a new disk");
  disk.device = status.st_dev;
  return disk;
}

}  // namespace

void check_disk_size(std::uint64_t bytes) {
  if (bytes < kLeastBytes || bytes > kMostBytes)
    fail(Code::invalid, "a disk of {} bytes cannot be made; from 4 MiB to 1 TiB can", bytes);
}

PrivateDisk make_private_disk(int folder_fd, std::uint64_t bytes) {
  check_disk_size(bytes);
  try {
    return make_nameless_disk(folder_fd, bytes);
  } catch (const Error& error) {
    fail(error.code(), "make a disk of {} bytes for what a sandbox writes: {}", bytes,
         error.what());
  }
}

void give_up_disk(int folder_fd, std::uint64_t device) noexcept {
  // EXT4_IOC_SHUTDOWN, which the kernel's headers for programs have only since 6.17, and its
  // EXT4_GOING_FLAGS_NOLOGFLUSH.
  constexpr unsigned long kShutDown = _IOR('X', 125, __u32);
  const __u32 without_writing = 2;
  const linux::Fd folder(::openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status{};
  // Any other file system might be everybody's.
  if (!folder || ::fstat(folder.get(), &status) != 0 || status.st_dev != device) return;
  ::ioctl(folder.get(), kShutDown, &without_writing);
}

void make_disk_file(int folder_fd, const std::string& file, std::uint64_t bytes) {
  check_disk_size(bytes);
  const linux::Fd made = make_file(folder_fd, file, bytes);
  OnFailure remove([&] { ::unlinkat(folder_fd, file.c_str(), 0); });
  format(made.get(), Lasting::yes);
  if (::fsync(made.get()) != 0) throw_errno("write a disk");
  remove.release();
}

linux::Fd mount_disk_file(int folder_fd, const std::string& file, const std::string& label) {
  auto device = linux::find_loop_device(label);
  if (!device) {
    const linux::Fd disk = linux::open_at(folder_fd, file, O_RDWR | O_NOFOLLOW);
    device = linux::attach_loop_device(disk.get(), label);
  }
  // The kernel has one file system for each device, however often it is mounted. What is deleted
  // inside is given back to the host.
  return linux::make_detached_mount(
      "ext4", {{"source", device->path}, {"noinit_itable", ""}, {"discard", ""}}, kFlags);
}

}  // namespace hearth::runtime
