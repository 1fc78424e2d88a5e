// An owned file descriptor, and the reads and writes that everyone would otherwise get wrong.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::linux {

// Move-only; closes what it holds. A plain `int ..._fd` parameter elsewhere means "borrowed".
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};

// Everything here makes close-on-exec descriptors and throws Error.
Pipe make_pipe();
Fd open_file(const std::string& path, int flags, unsigned mode = 0);
Fd open_at(int dir_fd, const std::string& path, int flags, unsigned mode = 0);
Fd duplicate(int fd);
void set_nonblocking(int fd, bool nonblocking);
// Programs open /dev/stdout anew, for which the kernel looks at the pipe's mode, and the users of a
// sandbox are others than we. Nobody else can reach a pipe that has no name; others are left alone.
void open_to_everyone(int pipe_fd);

// All of `bytes`, through short writes and EINTR; fd must be blocking.
void write_all(int fd, std::string_view bytes);

// A whole (small, kernel-made) file such as those of /proc and cgroups. Throws Error(exhausted)
// past `limit`.
std::string read_file(const std::string& path, std::size_t limit = 1 << 20);
std::string read_file_at(int dir_fd, const std::string& path, std::size_t limit = 1 << 20);

// One write(2) into an existing file: how kernel settings are set.
void write_file(const std::string& path, std::string_view text);
void write_file_at(int dir_fd, const std::string& path, std::string_view text);

}  // namespace hearth::linux
