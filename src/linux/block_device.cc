#include "linux/block_device.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/error.h"
#include "linux/fd.h"

namespace hearth::linux {

std::string find_disk(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) throw_errno("look at a file system");
  const Fd sys = open_file("/sys/dev/block", O_PATH | O_DIRECTORY);
  return find_disk(sys.get(), status.st_dev);
}

std::string find_disk(int sys_fd, dev_t device) {
  std::string name = fmt::format("{}:{}", major(device), minor(device));
  if (::faccessat(sys_fd, name.c_str(), F_OK, 0) != 0) {
    fail(Code::unavailable,
         "there is no one disk below the file system (device {}): it is in memory, spans several, "
         "or "
         "is somewhere else",
         name);
  }
  if (::faccessat(sys_fd, (name + "/partition").c_str(), F_OK, 0) != 0) return name;
  // The names are links to where the devices are, and a partition is a folder in its disk's.
  std::string disk = read_file_at(sys_fd, name + "/../dev");
  while (disk.ends_with('\n')) disk.pop_back();
  return disk;
}

}  // namespace hearth::linux
