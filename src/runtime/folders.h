// Where the runtime keeps what it keeps: two folders, owned by root and closed to everyone else.
// One that lasts:
//   images/host-X/   the layers of image 'host', made anew at every start
//   store/           all other images, see image::Store
//   volumes/         see volumes.h
//   logs/UNIT/       see log_keeper.h
//   disks/           empty: what is made in it loses its name at once, see disks.h
// and one in memory, because what it says is true until the machine goes down and no longer, and
// because making three files on a disk takes as long as everything else:
//   sandboxes/UNIT/  see shell.h
//   facts/           see facts.h
#pragma once

#include "linux/fd.h"

namespace hearth::runtime {

struct Folders {
  // Makes those that are missing. Throws Error.
  Folders(int lasting_fd, int memory_fd);

  int lasting_fd;  // borrowed
  linux::Fd images;
  linux::Fd store;
  linux::Fd volumes;
  linux::Fd logs;
  linux::Fd disks;
  linux::Fd sandboxes;
  linux::Fd facts;
};

// One that may be there already. Throws Error.
linux::Fd make_folder(int dir_fd, const char* name, unsigned mode);

}  // namespace hearth::runtime
