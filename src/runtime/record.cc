#include "runtime/record.h"

#include "base/error.h"
#include "base/wire.h"
#include "linux/fd.h"
#include "runtime/protocol.h"

namespace hearth::runtime {
namespace {

// On disk. A file with another number was written by a version that this one does not understand.
constexpr std::uint32_t kFormat = 7;

}  // namespace

std::string encode(const Record& record) {
  wire::Writer out;
  out.u32(kFormat);
  // Secrets are not ours to keep.
  SandboxSpec spec = record.spec;
  for (MountSpec& mount : spec.mounts) {
    mount.content.clear();
    mount.files.clear();
  }
  put(out, spec);
  out.u64(static_cast<std::uint64_t>(record.created.time_since_epoch().count()))
      .u32(static_cast<std::uint32_t>(record.pid))
      .u64(record.start_time)
      .text(record.boot_id)
      .text(record.unit)
      .u32(record.id_slot)
      .text(record.host_folder)
      .texts(record.layers)
      .texts(record.default_command)
      .boolean(record.configured)
      .text(record.berth)
      .boolean(record.has_network)
      .u32(record.network_slot)
      .text(record.address)
      .u64(record.disk_device);
  return std::move(out).take();
}

Record parse_record(std::string_view bytes) {
  wire::Reader in(bytes);
  const std::uint32_t format = in.u32();
  if (format != kFormat) fail(Code::invalid, "record of format {}, not {}", format, kFormat);
  Record record;
  record.spec = read_spec(in);
  record.created = Time(Duration(static_cast<Duration::rep>(in.u64())));
  record.pid = static_cast<std::int32_t>(in.u32());
  record.start_time = in.u64();
  record.boot_id = in.text();
  record.unit = in.text();
  record.id_slot = in.u32();
  record.host_folder = in.text();
  record.layers = in.texts();
  record.default_command = in.texts();
  record.configured = in.boolean();
  record.berth = in.text();
  record.has_network = in.boolean();
  record.network_slot = in.u32();
  record.address = in.text();
  record.disk_device = in.u64();
  in.end();
  return record;
}

std::string read_boot_id() {
  return linux::read_file("/proc/sys/kernel/random/boot_id");
}

}  // namespace hearth::runtime
