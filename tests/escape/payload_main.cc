#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "escape/payload.h"

namespace hearth::escape {

void Findings::must_fail(const std::string& what, long result) {
  const int error = errno;
  ++tried_;
  if (result >= 0) ++holes_;
  std::printf("%s: %s\n", what.c_str(), result >= 0 ? "HOLE, it worked" : std::strerror(error));
}

void Findings::must_hold(const std::string& what, bool holds) {
  ++tried_;
  if (!holds) ++holes_;
  std::printf("%s: %s\n", what.c_str(), holds ? "yes" : "HOLE, no");
}

void Findings::lacks(const std::string& what) {
  std::printf("not here: %s\n", what.c_str());
}

int Findings::exit_code() const {
  if (holes_ > 0) return 0;
  return tried_ > 0 ? 1 : 2;
}

bool managed_in_child(const std::function<int()>& run) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) ::_exit(run());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void walk(const std::string& folder, const std::function<void(const std::string& path)>& visit) {
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string path = (folder == "/" ? "" : folder) + "/" + name;
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) continue;
    visit(path);
    if (S_ISDIR(status.st_mode)) walk(path, visit);
  }
  ::closedir(dir);
}

std::string read_all(const std::string& path) {
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  ::close(fd);
  return text;
}

std::string read_link(const std::string& path) {
  char buffer[4096];
  const ssize_t got = ::readlink(path.c_str(), buffer, sizeof buffer);
  return got < 0 ? std::string() : std::string(buffer, static_cast<std::size_t>(got));
}

}  // namespace hearth::escape

namespace {

int run(const std::string& name, const hearth::escape::Arguments& arguments) {
  using namespace hearth::escape;
  for (const auto attempts : {mount_attempts(), process_attempts(), call_attempts(),
                              file_attempts(), neighbour_attempts(), network_attempts()}) {
    for (const Attempt& attempt : attempts) {
      if (name != attempt.name) continue;
      Findings findings;
      attempt.run(findings, arguments);
      return findings.exit_code();
    }
  }
  std::fprintf(stderr, "there is no attempt '%s'\n", name.c_str());
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: escape-payload NAME [ARGUMENT...]\n");
    return 3;
  }
  return run(argv[1], {argv + 2, argv + argc});
}
