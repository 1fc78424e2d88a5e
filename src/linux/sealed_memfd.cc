#include "linux/sealed_memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace hearth::linux {
namespace {

constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Fd make_memfd(const char* name, unsigned flags) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
  // Kernels before 6.3 do not know the flags about execution and make every memfd executable.
  if (!fd && errno == EINVAL) {
    fd.reset(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  }
  if (!fd) throw_errno("make a memfd");
  return fd;
}

void seal(const Fd& fd) {
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) throw_errno("seal a memfd");
}

}  // namespace

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

Fd make_sealed_memfd(const char* name, std::string_view bytes) {
  Fd fd = make_memfd(name, MFD_NOEXEC_SEAL);
  write_all(fd.get(), bytes);
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) throw_errno("rewind a memfd");
  seal(fd);
  return fd;
}

Fd make_sealed_program(const std::string& path) {
  const Fd source = open_file(path, O_RDONLY);
  struct stat status{};
  if (::fstat(source.get(), &status) != 0) throw_errno("stat '{}'", path);
  Fd copy = make_memfd("program", MFD_EXEC);
  off_t done = 0;
  while (done < status.st_size) {
    const ssize_t sent = ::sendfile(copy.get(), source.get(), &done,
                                    static_cast<std::size_t>(status.st_size - done));
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) throw_errno("copy '{}'", path);
    if (sent == 0) fail(Code::internal, "'{}' became shorter while it was copied", path);
  }
  if (::fchmod(copy.get(), 0555) != 0) throw_errno("make a copy of '{}' executable", path);
  seal(copy);
  return copy;
}

std::string read_sealed_memfd(int memfd, std::size_t limit) {
  constexpr int kNeeded = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = ::fcntl(memfd, F_GET_SEALS);
  if (seals < 0 || (seals & kNeeded) != kNeeded)
    fail(Code::invalid, "message is not in a sealed memfd");
  struct stat status{};
  if (::fstat(memfd, &status) != 0) throw_errno("stat a memfd");
  if (static_cast<std::size_t>(status.st_size) > limit) {
    fail(Code::exhausted, "message of {} bytes is larger than {}", status.st_size, limit);
  }
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        ::pread(memfd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw_errno("read a memfd");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace hearth::linux
