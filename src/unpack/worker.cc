#include "unpack/worker.h"

#include <new>

#include "base/error.h"
#include "unpack/byte_input.h"
#include "unpack/copy_tree.h"
#include "unpack/decompress.h"
#include "unpack/tree_writer.h"

namespace hearth::unpack {
namespace {

using image::Job;
using image::Report;

Report do_job(const Job& job, int root_fd) {
  Report report;
  switch (job.task) {
    case Job::Task::decompress: {
      const Decompressed done = decompress({.input_fd = image::kJobInputFd,
                                            .output_fd = image::kJobTargetFd,
                                            .compression = job.compression,
                                            .digest = job.digest,
                                            .max_bytes = job.max_bytes});
      report.diff_id = done.digest;
      report.bytes = done.bytes;
      break;
    }
    case Job::Task::apply: {
      ByteInput input(image::kJobInputFd);
      report.bytes = apply_archive(input, root_fd, job.max_bytes, image::kMaxTreeEntries);
      break;
    }
    case Job::Task::copy:
      report.bytes = copy_tree({.source_fd = image::kJobInputFd,
                                .root_fd = root_fd,
                                .overlay_marks = job.overlay_marks,
                                .max_bytes = job.max_bytes,
                                .max_entries = image::kMaxTreeEntries});
      break;
  }
  report.done = true;
  return report;
}

Report failure(Code code, std::string message) {
  Report report;
  report.code = code;
  report.message = std::move(message);
  return report;
}

}  // namespace

Report work(const Job& job, int root_fd) {
  try {
    return do_job(job, root_fd);
  } catch (const Error& error) {
    return failure(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return failure(Code::exhausted, "the layer takes too much memory to unpack");
  } catch (const std::exception& error) {
    return failure(Code::internal, error.what());
  }
}

}  // namespace hearth::unpack
