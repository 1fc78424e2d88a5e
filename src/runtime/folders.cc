#include "runtime/folders.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/error.h"
#include "linux/files.h"

namespace hearth::runtime {

linux::Fd make_folder(int dir_fd, const char* name, unsigned mode) {
  if (::mkdirat(dir_fd, name, mode) != 0 && errno != EEXIST) throw_errno("make folder '{}'", name);
  return linux::open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Folders::Folders(int lasting_fd, int memory_fd)
    : lasting_fd(lasting_fd),
      images(make_folder(lasting_fd, "images", 0700)),
      store(make_folder(lasting_fd, "store", 0700)),
      volumes(make_folder(lasting_fd, "volumes", 0700)),
      logs(make_folder(lasting_fd, "logs", 0700)),
      disks(make_folder(lasting_fd, "disks", 0700)),
      sandboxes(make_folder(memory_fd, "sandboxes", 0700)),
      facts(make_folder(memory_fd, "facts", 0711)) {}

}  // namespace hearth::runtime
