#include "guest/boot.h"

#include "base/wire.h"

namespace hearth::guest {

std::string encode(const BootConfig& config) {
  wire::Writer out;
  out.text(config.hostname)
      .texts(config.environment)
      .text(config.user)
      .u64(config.capabilities)
      .text(config.seccomp_filter)
      .u32(config.join_count)
      .u32(config.join_at_start);
  return std::move(out).take();
}

BootConfig parse_boot_config(std::string_view bytes) {
  wire::Reader in(bytes);
  BootConfig config;
  config.hostname = in.text();
  config.environment = in.texts();
  config.user = in.text();
  config.capabilities = in.u64();
  config.seccomp_filter = in.text();
  config.join_count = in.u32();
  config.join_at_start = in.u32();
  in.end();
  return config;
}

}  // namespace hearth::guest
