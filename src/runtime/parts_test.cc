#include <poll.h>

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "linux/fd.h"
#include "runtime/id_ranges.h"
#include "runtime/partings.h"
#include "runtime/protocol.h"
#include "runtime/record.h"

namespace hearth::runtime {
namespace {

SandboxSpec some_spec() {
  SandboxSpec spec;
  spec.id = "box-1";
  spec.hostname = "box.example";
  spec.joins = "first";
  spec.environment = {"A=b", "C="};
  spec.user = "user";
  spec.disk_on = DiskPlace::disk;
  spec.read_only_root = true;
  spec.ulimits = {{.resource = RLIMIT_NOFILE, .soft = 7, .hard = linux::kUnlimited}};
  spec.limits = {.memory_bytes = 1 << 20, .cpu_millis = 1500, .pids = 7, .disk_bytes = 3};
  spec.limits.io = {.read_bytes = 4, .write_bytes = 5, .read_ops = 6, .write_ops = 8};
  return spec;
}

TEST(RuntimeProtocol, ReadsWhatWasWritten) {
  const auto create =
      std::get<CreateRequest>(parse_request(encode(Request(CreateRequest{some_spec()}))));
  EXPECT_EQ(create.spec.id, "box-1");
  EXPECT_EQ(create.spec.hostname, "box.example");
  EXPECT_EQ(create.spec.joins, "first");
  EXPECT_EQ(create.spec.environment, some_spec().environment);
  EXPECT_EQ(create.spec.limits, some_spec().limits);
  EXPECT_EQ(create.spec.ulimits, some_spec().ulimits);
  EXPECT_EQ(create.spec.disk_on, DiskPlace::disk);
  EXPECT_TRUE(create.spec.read_only_root);

  MountSpec tree{.kind = MountKind::tree, .target = "/c"};
  tree.files = {{"a", "1", 0444}};
  tree.changes = true;
  const auto replace = std::get<ReplaceFilesRequest>(
      parse_request(encode(Request(ReplaceFilesRequest{.id = "box-1", .trees = {tree}}))));
  EXPECT_EQ(replace.id, "box-1");
  ASSERT_EQ(replace.trees.size(), 1u);
  EXPECT_EQ(replace.trees[0].files, tree.files);
  EXPECT_TRUE(replace.trees[0].changes);

  Sandbox sandbox{.id = "box-1", .state = State::exited, .image = "host", .pid = 77};
  sandbox.created = Time(std::chrono::seconds(1'700'000'000));
  sandbox.usage.oom_kills = 3;
  const auto list =
      std::get<Sandboxes>(parse_reply(encode(Reply(Sandboxes{.all = {sandbox, sandbox}}))));
  ASSERT_EQ(list.all.size(), 2u);
  EXPECT_EQ(list.all[1].state, State::exited);
  EXPECT_EQ(list.all[1].created, sandbox.created);
  EXPECT_EQ(list.all[1].usage.oom_kills, 3u);

  const auto volume = std::get<CreateVolumeRequest>(
      parse_request(encode(Request(CreateVolumeRequest{.name = "data", .bytes = 7}))));
  EXPECT_EQ(volume.name, "data");
  EXPECT_EQ(volume.bytes, 7u);
  const auto volumes = std::get<VolumeList>(parse_reply(
      encode(Reply(VolumeList{.all = {{.name = "data", .size_bytes = 9, .taken_bytes = 8}}}))));
  ASSERT_EQ(volumes.all.size(), 1u);
  EXPECT_EQ(volumes.all[0].size_bytes, 9u);
  EXPECT_EQ(volumes.all[0].taken_bytes, 8u);

  ConfigureRequest late{.id = "box-1", .belongings = {.hostname = "mine"}};
  late.belongings.configuration.user = "user";
  late.belongings.volumes = {{.source = "data", .target = "/data", .read_only = true}};
  late = std::get<ConfigureRequest>(parse_request(encode(Request(late))));
  EXPECT_EQ(late.belongings.hostname, "mine");
  EXPECT_EQ(late.belongings.configuration.user, "user");
  ASSERT_EQ(late.belongings.volumes.size(), 1u);
  EXPECT_EQ(late.belongings.volumes[0].target, "/data");
  EXPECT_TRUE(late.belongings.volumes[0].read_only);

  const auto failed = std::get<Failed>(parse_reply(encode(Reply(Failed{Code::conflict, "no"}))));
  EXPECT_EQ(failed.code, Code::conflict);
}

TEST(RuntimeProtocol, RefusesWhatIsNone) {
  EXPECT_THROW(parse_request(""), Error);
  EXPECT_THROW(parse_request("\x7f"), Error);
  EXPECT_THROW(parse_request(encode(Request(ListRequest{})) + "more"), Error);
  EXPECT_THROW(parse_reply(std::string("\x03\xff\xff\xff\xff", 5)), Error);
}

TEST(Record, ReadsWhatWasWritten) {
  Record record;
  record.spec = some_spec();
  record.pid = 4711;
  record.start_time = 99;
  record.boot_id = "boot";
  record.id_slot = 12;
  record.host_folder = "host-1";
  record.disk_device = 77;
  record.berth = "u7";
  record.configured = true;

  const Record parsed = parse_record(encode(record));

  EXPECT_EQ(parsed.spec.id, "box-1");
  EXPECT_EQ(parsed.pid, 4711);
  EXPECT_EQ(parsed.start_time, 99u);
  EXPECT_EQ(parsed.id_slot, 12u);
  EXPECT_EQ(parsed.host_folder, "host-1");
  EXPECT_EQ(parsed.disk_device, 77u);
  EXPECT_EQ(parsed.berth, "u7");
  EXPECT_TRUE(parsed.configured);
}

TEST(Record, OfAnotherFormatIsNotUnderstood) {
  std::string bytes = encode(Record{});
  bytes[0] = 77;
  EXPECT_THROW(parse_record(bytes), Error);
  EXPECT_THROW(parse_record(encode(Record{}).substr(0, 20)), Error);
}

TEST(IdRanges, NeverGiveOneTwice) {
  IdRanges ranges(kIdSlots - 2);  // wraps around
  std::set<std::uint32_t> slots;
  ranges.mark_used(0);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(slots.insert(ranges.acquire()).second);
  EXPECT_FALSE(slots.contains(0));

  ranges.release(*slots.begin());
  EXPECT_EQ(ranges.acquire(), *slots.begin());
}

TEST(IdRanges, HaveAnEnd) {
  IdRanges ranges(0);
  for (std::uint32_t i = 0; i < kIdSlots; ++i) ranges.acquire();
  EXPECT_THROW(ranges.acquire(), Error);
}

TEST(IdRanges, StayClearOfAccountsAndOfEachOther) {
  const linux::IdRange first = ids_of_slot(0);
  const linux::IdRange second = ids_of_slot(1);
  const linux::IdRange last = ids_of_slot(kIdSlots - 1);
  EXPECT_GE(first.first, 0x1000'0000u);
  EXPECT_EQ(first.first + first.count, second.first);
  // Ids are signed to some programs.
  EXPECT_LE(std::uint64_t{last.first} + last.count, std::uint64_t{0x8000'0000});
}

// Pipes stand for namespaces: whoever holds the other end sees when this one is let go of.
bool is_let_go(const linux::Pipe& pipe, int milliseconds) {
  pollfd other_end{.fd = pipe.read.get(), .events = 0, .revents = 0};
  return ::poll(&other_end, 1, milliseconds) == 1 && (other_end.revents & POLLHUP) != 0;
}

TEST(Partings, TheFirstGoesAtOnceAndOthersTogether) {
  constexpr int kLong = 20'000;
  Partings partings;
  std::vector<linux::Pipe> pipes;
  for (int i = 0; i < 3; ++i) {
    pipes.push_back(linux::make_pipe());
    partings.add(std::move(pipes.back().write));
  }
  EXPECT_TRUE(is_let_go(pipes[0], 0));
  EXPECT_TRUE(is_let_go(pipes[1], kLong)) << "without anybody's asking";
  EXPECT_TRUE(is_let_go(pipes[2], kLong));

  linux::Pipe late = linux::make_pipe();
  partings.add(std::move(late.write));
  partings.let_go_of_all();
  EXPECT_TRUE(is_let_go(late, 0));
}

TEST(Partings, NobodyIsKeptByTheEnd) {
  linux::Pipe pipes[] = {linux::make_pipe(), linux::make_pipe()};
  {
    Partings partings;
    for (linux::Pipe& pipe : pipes) partings.add(std::move(pipe.write));
  }
  for (const linux::Pipe& pipe : pipes) EXPECT_TRUE(is_let_go(pipe, 0));
}

}  // namespace
}  // namespace hearth::runtime
