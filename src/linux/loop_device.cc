#include "linux/loop_device.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "linux/files.h"

namespace hearth::linux {
namespace {

// Somebody else may take the free device that we were told of.
constexpr int kTries = 100;

[[noreturn]] void fail_without_devices(const std::string& path) {
  const int error = errno;
  fail(Code::unavailable, "this machine gives us no loop devices: open '{}': {}", path,
       errno_text(error));
}

void set_label(loop_info64& info, const std::string& label) {
  HEARTH_ASSERT(label.size() < sizeof info.lo_file_name);
  std::memcpy(info.lo_file_name, label.data(), label.size());
}

bool has_label(const Fd& device, const std::string& label) {
  loop_info64 wanted{};
  set_label(wanted, label);
  loop_info64 info{};
  // ENXIO: it has no file.
  if (::ioctl(device.get(), LOOP_GET_STATUS64, &info) != 0) return false;
  return std::memcmp(info.lo_file_name, wanted.lo_file_name, sizeof info.lo_file_name) == 0;
}

// False when it was taken meanwhile.
bool configure(const Fd& device, int file_fd, const std::string& label) {
  loop_config config{};
  config.fd = static_cast<__u32>(file_fd);
  // Past the cache where the file's own file system can: else everything is in memory twice, and
  // nobody knows any more on whose account it is written.
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
  set_label(config.info, label);
  if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) return true;
  if (errno == EBUSY) return false;
  throw_errno("make a block device of a file");
}

}  // namespace

LoopDevice attach_loop_device(int file_fd, const std::string& label) {
  constexpr const char* kControl = "/dev/loop-control";
  const Fd control(::open(kControl, O_RDWR | O_CLOEXEC));
  if (!control) fail_without_devices(kControl);
  for (int tries = 0; tries < kTries; ++tries) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) throw_errno("get a free loop device");
    LoopDevice device{.fd = {}, .path = fmt::format("/dev/loop{}", number)};
    device.fd = Fd(::open(device.path.c_str(), O_RDWR | O_CLOEXEC));
    if (!device.fd) fail_without_devices(device.path);
    if (configure(device.fd, file_fd, label)) return device;
  }
  fail(Code::unavailable, "every free loop device was taken by somebody else, {} times", kTries);
}

std::optional<LoopDevice> find_loop_device(const std::string& label) {
  const Fd blocks = open_file("/sys/block", O_RDONLY | O_DIRECTORY);
  for (const std::string& name : list_folder(blocks.get())) {
    if (!name.starts_with("loop")) continue;
    // Only devices with a file have it.
    if (::faccessat(blocks.get(), (name + "/loop/backing_file").c_str(), F_OK, 0) != 0) continue;
    LoopDevice device{.fd = {}, .path = "/dev/" + name};
    // Open, it cannot become another's.
    device.fd = Fd(::open(device.path.c_str(), O_RDWR | O_CLOEXEC));
    if (device.fd && has_label(device.fd, label)) return device;
  }
  return std::nullopt;
}

}  // namespace hearth::linux
