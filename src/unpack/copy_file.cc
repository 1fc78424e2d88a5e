#include "unpack/copy_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"

namespace hearth::unpack {
namespace {

constexpr std::size_t kBufferSize = std::size_t{256} << 10;
// Between two looks at the budget.
constexpr std::size_t kMaxStep = std::size_t{64} << 20;

bool is_unsupported(int error) {
  return error == EXDEV || error == EOPNOTSUPP || error == ENOSYS || error == EINVAL ||
         error == ENOTTY || error == EPERM;
}

void write_at(int fd, const char* bytes, std::size_t size, std::int64_t offset) {
  while (size > 0) {
    const ssize_t put = ::pwrite(fd, bytes, size, offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw_errno("write a copy");
    bytes += put;
    size -= static_cast<std::size_t>(put);
    offset += put;
  }
}

}  // namespace

FileCopier::FileCopier(Budget& budget) : budget_(budget), buffer_(kBufferSize) {}

// Copy on write: takes no time and no room. It is counted all the same, the source will go.
bool FileCopier::try_share(int from_fd, int to_fd, std::uint64_t size) {
  if (!can_share_) return false;
  if (::ioctl(to_fd, FICLONE, from_fd) == 0) {
    budget_.add_data(size);
    return true;
  }
  if (!is_unsupported(errno)) throw_errno("share a file's blocks");
  can_share_ = false;
  return false;
}

std::uint64_t FileCopier::copy_in_kernel(int from_fd, int to_fd, std::int64_t begin,
                                         std::int64_t end) {
  std::int64_t from = begin;
  std::int64_t to = begin;
  while (can_copy_in_kernel_ && from < end) {
    const std::size_t step =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(end - from), kMaxStep);
    const ssize_t got = ::copy_file_range(from_fd, &from, to_fd, &to, step, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && !is_unsupported(errno)) throw_errno("copy a file");
    if (got < 0) can_copy_in_kernel_ = false;
    if (got <= 0) break;
    budget_.add_data(static_cast<std::uint64_t>(got));
  }
  return static_cast<std::uint64_t>(from - begin);
}

// Returns how many bytes there were: a file that shrinks meanwhile has fewer.
std::uint64_t FileCopier::copy_range(int from_fd, int to_fd, std::int64_t begin, std::int64_t end) {
  std::uint64_t copied = copy_in_kernel(from_fd, to_fd, begin, end);
  std::int64_t at = begin + static_cast<std::int64_t>(copied);
  while (at < end) {
    const std::size_t most =
        std::min<std::uint64_t>(buffer_.size(), static_cast<std::uint64_t>(end - at));
    const ssize_t got = ::pread(from_fd, buffer_.data(), most, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("read a file to copy");
    if (got == 0) break;
    budget_.add_data(static_cast<std::uint64_t>(got));
    write_at(to_fd, buffer_.data(), static_cast<std::size_t>(got), at);
    at += got;
    copied += static_cast<std::uint64_t>(got);
  }
  return copied;
}

void FileCopier::copy(int from_fd, int to_fd, const struct stat& status) {
  if (status.st_size == 0) return;
  const std::int64_t size = status.st_size;
  constexpr std::int64_t kStatBlock = 512;
  const std::int64_t stored = std::min<std::int64_t>(status.st_blocks * kStatBlock, size);
  std::uint64_t copied = 0;
  if (try_share(from_fd, to_fd, static_cast<std::uint64_t>(stored))) return;
  if (stored == size) {
    copied = copy_range(from_fd, to_fd, 0, size);
  } else {
    for (std::int64_t at = 0; at < size;) {
      const std::int64_t data = ::lseek(from_fd, at, SEEK_DATA);
      if (data < 0 && errno == ENXIO) break;  // a hole to the end
      if (data < 0) throw_errno("look for a file's data");
      const std::int64_t hole = ::lseek(from_fd, data, SEEK_HOLE);
      if (hole < 0) throw_errno("look for a file's holes");
      at = std::min(hole, size);
      if (data < at) copied += copy_range(from_fd, to_fd, data, at);
    }
    if (::ftruncate(to_fd, size) != 0) throw_errno("set the size of a copy");
  }
  budget_.end_file(copied);
}

}  // namespace hearth::unpack
