// One job of the store, done: image/unpack_job.h says which there are.
#pragma once

#include "image/unpack_job.h"

namespace hearth::unpack {

// From the descriptors that image/unpack_job.h names into root_fd. Never throws: what goes wrong is
// in the report.
image::Report work(const image::Job& job, int root_fd);

}  // namespace hearth::unpack
