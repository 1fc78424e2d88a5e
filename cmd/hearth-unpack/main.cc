// hearth-unpack: reads strangers' archives for hearth-runtime, which starts it in namespaces of its
// own with nothing in sight but the folder to fill. Confines itself further, does one job, reports,
// ends.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "base/error.h"
#include "image/unpack_job.h"
#include "linux/channel.h"
#include "linux/fd.h"
#include "unpack/confine.h"
#include "unpack/worker.h"

namespace {

using namespace hearth;

image::Report run(linux::Channel& channel) {
  // Gone with the thread that waits for us.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) throw_errno("end with the parent");
  ::signal(SIGPIPE, SIG_IGN);
  const auto message = channel.receive();
  if (!message) fail(Code::unavailable, "nobody to work for");
  const image::Job job = image::parse_job(message->bytes);
  if (job.task == image::Job::Task::decompress) {
    unpack::enter_root(unpack::make_empty_mount().get());
  } else {
    const linux::Fd target(image::kJobTargetFd);
    unpack::enter_root(target.get());
  }
  const linux::Fd root = linux::open_file("/", O_RDONLY | O_DIRECTORY);
  unpack::confine(job.task);
  return unpack::work(job, root.get());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--version") {
    std::puts("hearth-unpack " HEARTH_VERSION);
    return 0;
  }
  if (::getpid() != 1) {
    std::fputs(
        "hearth-unpack: is started by hearth-runtime, in namespaces of its own; there is nothing "
        "to run by hand\n",
        stderr);
    return 2;
  }
  try {
    linux::Channel channel{linux::Fd(image::kJobChannelFd)};
    image::Report report;
    try {
      report = run(channel);
    } catch (const std::exception& error) {
      report.message = error.what();
    }
    channel.send(image::encode(report));
    return report.done ? 0 : 1;
  } catch (const std::exception&) {
    return 1;  // nobody listens
  }
}
