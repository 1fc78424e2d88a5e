#include "guest/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "linux/fd.h"

namespace hearth::guest {
namespace {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
};

bool read_process(int proc_fd, pid_t pid, Process& process) {
  char path[32];
  std::snprintf(path, sizeof path, "%d/stat", pid);
  const linux::Fd fd(::openat(proc_fd, path, O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  char text[512];
  const ssize_t got = ::read(fd.get(), text, sizeof text - 1);
  if (got <= 0) return false;
  text[got] = '\0';
  // The name in brackets may itself hold brackets and blanks.
  const char* name_end = std::strrchr(text, ')');
  char state = 0;
  process.pid = pid;
  return name_end != nullptr &&
         std::sscanf(name_end + 1, " %c %d %d %d", &state, &process.parent, &process.group,
                     &process.session) == 4 &&
         state != 'Z';
}

std::vector<Process> all_processes(int proc_fd) {
  std::vector<Process> processes;
  // A descriptor of its own: readdir(3) moves the position.
  DIR* folder = ::fdopendir(::openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder == nullptr) return processes;
  while (const dirent* entry = ::readdir(folder)) {
    pid_t pid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, pid).ptr != end) continue;
    Process process;
    if (read_process(proc_fd, pid, process)) processes.push_back(process);
  }
  ::closedir(folder);
  return processes;
}

}  // namespace

int kill_tree(int proc_fd, pid_t root) {
  // A tree that outruns this many looks is a fork storm: its limit of processes holds it, and what
  // is left of it ends with the sandbox.
  constexpr int kMaxLooks = 32;
  std::set<pid_t> family{root};
  int killed = 0;
  for (int look = 0; look < kMaxLooks; ++look) {
    const std::vector<Process> processes = all_processes(proc_fd);
    std::vector<pid_t> found;
    // Parents may be listed after their children: repeat until no more join.
    for (bool grew = true; grew;) {
      grew = false;
      for (const Process& process : processes) {
        const bool related = family.contains(process.parent) || process.session == root ||
                             process.group == root || process.pid == root;
        if (!related || process.pid == 1) continue;
        if (family.insert(process.pid).second) grew = true;
      }
    }
    for (const Process& process : processes) {
      if (process.pid != 1 && family.contains(process.pid)) found.push_back(process.pid);
    }
    if (found.empty()) return killed;
    // Stopped first, so that nobody forks while his siblings are being killed.
    for (const pid_t pid : found) ::kill(pid, SIGSTOP);
    for (const pid_t pid : found) killed += ::kill(pid, SIGKILL) == 0 ? 1 : 0;
  }
  return killed;
}

}  // namespace hearth::guest
