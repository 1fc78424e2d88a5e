// What the helper gives up before it reads one byte of an archive: the host's file system, resource
// limits, capabilities, new privileges, system calls. Its namespaces came before
// (image/unpack_helper.h).
#pragma once

#include "image/unpack_job.h"
#include "linux/fd.h"

namespace hearth::unpack {

// Makes what a detached mount holds the root folder and lets go of the old one. The caller must be
// root of a mount namespace of its own. Throws Error.
void enter_root(int mount_fd);

// A detached mount of an empty folder that stays empty.
linux::Fd make_empty_mount();

// For good. Throws Error; the caller must not go on then.
void confine(image::Job::Task task);

}  // namespace hearth::unpack
