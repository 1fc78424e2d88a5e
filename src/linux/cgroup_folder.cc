#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <thread>

#include "base/error.h"
#include "linux/cgroup_folder_internal.h"
#include "linux/cgroup_layout.h"

namespace hearth::linux {
namespace {

// True when the folder is gone, false when something is in it.
bool remove_if_empty(int dir_fd, const std::string& name) {
  if (::unlinkat(dir_fd, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
  if (errno != EBUSY) throw_errno("remove cgroup '{}'", name);
  return false;
}

void write_if_present(int dir_fd, const char* file, std::string_view text) {
  const Fd fd(::openat(dir_fd, file, O_WRONLY | O_CLOEXEC));
  if (!fd) return;
  // A folder that vanishes meanwhile (ENODEV) is what we are after.
  [[maybe_unused]] const ssize_t written = ::write(fd.get(), text.data(), text.size());
}

void kill_listed(int dir_fd) {
  for (const std::string& word : split_words(read_cgroup_file(dir_fd, "cgroup.procs"), '\n')) {
    pid_t pid = 0;
    std::from_chars(word.data(), word.data() + word.size(), pid);
    // A process outside our pid namespace reads as 0, and kill(0) means ourselves.
    if (pid > 0) ::kill(pid, SIGKILL);
  }
}

void kill_all(int dir_fd) {
  if (has_cgroup_file(dir_fd, "cgroup.kill")) {
    write_if_present(dir_fd, "cgroup.kill", "1");  // v2 since Linux 5.14; what forks dies as well
    return;
  }
  kill_listed(dir_fd);
  // A process that the v1 freezer holds dies only when let go; v2 lets SIGKILL through.
  write_if_present(dir_fd, "freezer.state", "THAWED");
}

}  // namespace

void Backoff::wait() {
  constexpr int kYields = 50;
  if (round_ < kYields) {
    ++round_;
    ::sched_yield();
    return;
  }
  const int doublings = std::min(round_ - kYields, 5);
  if (doublings < 5) ++round_;
  std::this_thread::sleep_for(std::chrono::microseconds(60) * (1 << doublings));
}

std::string read_cgroup_file(int dir_fd, const std::string& file) {
  const Fd fd(::openat(dir_fd, file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  while (fd) {
    char buffer[4096];
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

std::optional<std::uint64_t> number_in(int dir_fd, const std::string& file) {
  const std::string text = read_cgroup_file(dir_fd, file);
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() ? std::optional(value) : std::nullopt;
}

bool has_cgroup_file(int dir_fd, const std::string& file) {
  return ::faccessat(dir_fd, file.c_str(), F_OK, 0) == 0;
}

namespace {

template <typename F>
std::vector<std::string> list_folders(int dir_fd, F is_wanted) {
  Fd fd = open_at(dir_fd, ".", O_RDONLY | O_DIRECTORY);
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(fd.get()), ::closedir);
  if (!dir) throw_errno("list a cgroup folder");
  fd.release();

  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir.get())) {
    if (entry->d_type == DT_DIR && is_wanted(std::string_view(entry->d_name)))
      names.emplace_back(entry->d_name);
  }
  return names;
}

}  // namespace

std::vector<std::string> list_cgroup_folders(int dir_fd) {
  return list_folders(dir_fd, [](std::string_view name) { return !name.starts_with('.'); });
}

std::vector<std::string> list_hidden_cgroup_folders(int dir_fd) {
  return list_folders(dir_fd, [](std::string_view name) {
    return name.starts_with('.') && name != "." && name != "..";
  });
}

bool make_cgroup_folder(int dir_fd, const std::string& name) {
  if (::mkdirat(dir_fd, name.c_str(), 0755) == 0) return true;
  if (errno != EEXIST) throw_errno("make cgroup '{}'", name);
  return false;
}

bool remove_cgroup_folder(int dir_fd, const std::string& name, Deadline deadline) {
  Backoff backoff;
  while (!remove_if_empty(dir_fd, name)) {
    if (deadline.passed()) return false;
    backoff.wait();
  }
  return true;
}

bool kill_and_remove_cgroup_folder(int dir_fd, const std::string& name) {
  if (remove_if_empty(dir_fd, name)) return true;
  const Fd folder(::openat(dir_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return errno == ENOENT;

  kill_all(folder.get());
  for (const std::string& inner : list_cgroup_folders(folder.get())) {
    kill_and_remove_cgroup_folder(folder.get(), inner);
  }
  return remove_if_empty(dir_fd, name);
}

}  // namespace hearth::linux
