// Files as block devices, see loop(4).
//
// A device lives as long as somebody has it open or mounted and goes by itself then, whoever dies
// when: there is nothing to clean up. It holds its file, which may lose its name meanwhile.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "linux/fd.h"

namespace hearth::linux {

struct LoopDevice {
  Fd fd;
  std::string path;  // such as "/dev/loop3", for mounting it while fd is open
};

// What a device can be found by again: at most 63 bytes.
LoopDevice attach_loop_device(int file_fd, const std::string& label);

// The device of that label. Nothing when there is none (any more).
std::optional<LoopDevice> find_loop_device(const std::string& label);

// Both throw Error(unavailable) on a machine without loop devices.

}  // namespace hearth::linux
