#include "linux/fd.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"

namespace hearth::linux {

void Fd::reset(int fd) {
  // close(2) releases the descriptor even when it reports an error: never retry.
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("make a pipe");
  return {.read = Fd(ends[0]), .write = Fd(ends[1])};
}

Fd open_at(int dir_fd, const std::string& path, int flags, unsigned mode) {
  Fd fd(::openat(dir_fd, path.c_str(), flags | O_CLOEXEC, mode));
  if (!fd) throw_errno("open '{}'", path);
  return fd;
}

Fd open_file(const std::string& path, int flags, unsigned mode) {
  return open_at(AT_FDCWD, path, flags, mode);
}

Fd duplicate(int fd) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) throw_errno("duplicate file descriptor {}", fd);
  return copy;
}

void set_nonblocking(int fd, bool nonblocking) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) throw_errno("read the flags of file descriptor {}", fd);
  const int wanted = nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
  if (::fcntl(fd, F_SETFL, wanted) != 0) throw_errno("set the flags of file descriptor {}", fd);
}

void open_to_everyone(int pipe_fd) {
  struct statfs where{};
  if (::fstatfs(pipe_fd, &where) == 0 && where.f_type == PIPEFS_MAGIC) {
    [[maybe_unused]] const int changed = ::fchmod(pipe_fd, 0666);
  }
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_errno("write {} bytes", bytes.size());
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string read_file_at(int dir_fd, const std::string& path, std::size_t limit) {
  const Fd fd = open_at(dir_fd, path, O_RDONLY);
  std::string text;
  while (true) {
    char buffer[4096];
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("read '{}'", path);
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > limit) fail(Code::exhausted, "'{}' is larger than {} bytes", path, limit);
  }
}

std::string read_file(const std::string& path, std::size_t limit) {
  return read_file_at(AT_FDCWD, path, limit);
}

void write_file_at(int dir_fd, const std::string& path, std::string_view text) {
  const Fd fd = open_at(dir_fd, path, O_WRONLY);
  const ssize_t written = ::write(fd.get(), text.data(), text.size());
  if (written < 0) throw_errno("write '{}' to '{}'", text, path);
}

void write_file(const std::string& path, std::string_view text) {
  write_file_at(AT_FDCWD, path, text);
}

}  // namespace hearth::linux
