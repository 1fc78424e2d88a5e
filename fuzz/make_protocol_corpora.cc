// Writes one input of each kind for the fuzzers of our own messages, as they are encoded today. To
// be run when a message changes: make_protocol_corpora fuzz/
//
// An input's first byte says which parser it is for; see guest/protocol_fuzz.cc and
// runtime/protocol_fuzz.cc.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "guest/boot.h"
#include "guest/protocol.h"
#include "runtime/protocol.h"
#include "runtime/record.h"

using namespace hearth;

namespace {

class Corpus {
 public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }
  void add(const char* name, char parser, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << parser << bytes;
  }

 private:
  std::filesystem::path folder_;
};

void write_guest(const Corpus& corpus) {
  using namespace guest;
  ExecRequest exec{.command = {"sh", "-c", "true"}, .environment = {"A=b"}, .directory = "/tmp"};
  exec.user = "user";
  exec.detached = exec.keep_input = true;
  exec.restart = Restart::on_failure;
  corpus.add("hello", 0, encode(Request(HelloRequest{})));
  corpus.add("exec", 0, encode(Request(exec)));
  ExecRequest sudo{
      .command = {"id"}, .environment = {"PATH=/bin"}, .directory = "/", .user = "0:0"};
  sudo.terminal = true;
  sudo.rows = 24;
  sudo.columns = 80;
  corpus.add("sudo", 0, encode(Request(sudo)));
  corpus.add("signal", 0, encode(Request(SignalRequest{.signal = 15})));
  corpus.add("log", 0, encode(Request(LogRequest{.follow = true, .keep = true, .from = 7})));
  corpus.add("stop", 0, encode(Request(StopRequest{.grace_milliseconds = 500})));
  corpus.add("attach", 0, encode(Request(AttachRequest{.pid = 7})));
  corpus.add("end", 0, encode(Request(EndRequest{})));
  corpus.add("file", 0, encode(Request(FileRequest{.path = "/dev/termination-log", .most = 99})));
  corpus.add("hello-reply", 1, encode(Reply(Hello{.version = "1.0"})));
  corpus.add("started", 1, encode(Reply(Started{.pid = 7})));
  corpus.add("exited", 1, encode(Reply(Exited{.status = {.code = 7}})));
  corpus.add("failed", 1, encode(Reply(Failed{.message = "no"})));
  corpus.add("output", 1,
             encode(Reply(Output{.bytes = "hi\n", .stream = Stream::error, .position = 7})));
  Assignment assignment{.hostname = "box", .environment = {"A=b"}, .user = "user"};
  assignment.cpus = {0, 1};
  assignment.ulimits = {{.resource = RLIMIT_NOFILE, .soft = 7, .hard = 9}};
  assignment.disk = true;
  assignment.sudoers = {"user"};
  assignment.read_only_root = true;
  assignment.attachments = {{.target = "/data"}, {.target = "/key", .folder = false}};
  corpus.add("assignment", 2, encode(assignment));
  corpus.add("order", 3, encode(ShellOrder{.ids = {.first = 65536, .count = 65536}}));
  corpus.add("nursery", 4, encode(NurseryConfig{.common_filter = "12345678", .capabilities = 3}));
}

runtime::SandboxSpec some_spec() {
  runtime::SandboxSpec spec{.id = "box", .environment = {"A=b"}, .user = "user"};
  spec.limits.io = {.read_bytes = 1 << 20, .write_ops = 50};
  spec.ulimits = {{.resource = RLIMIT_NOFILE, .soft = 7, .hard = 9}};
  spec.disk_on = runtime::DiskPlace::disk;
  spec.read_only_root = true;
  spec.hostname = "pod";
  spec.joins = "first";
  spec.sudoers = {"user"};
  spec.network.emplace();
  spec.mounts = {{.source = "cache", .target = "/cache"}};
  spec.mounts.push_back({.kind = runtime::MountKind::tree, .target = "/etc/app"});
  spec.mounts.back().files = {{.path = "a/b", .content = "c", .mode = 0400}};
  spec.mounts.back().changes = true;
  return spec;
}

void write_runtime(const Corpus& corpus) {
  using namespace runtime;
  corpus.add("create", 0, encode(Request(CreateRequest{.spec = some_spec()})));
  ConfigureRequest late{.id = "box", .belongings = {.hostname = "mine"}};
  late.belongings.volumes = {{.source = "data", .target = "/data", .read_only = true}};
  corpus.add("configure", 0, encode(Request(late)));
  corpus.add("connect", 0, encode(Request(ConnectRequest{.id = "box"})));
  corpus.add("list", 0, encode(Request(ListRequest{})));
  corpus.add("shutdown", 0, encode(Request(ShutdownRequest{.destroy_all = true})));
  corpus.add("policy", 0, encode(Request(PolicyRequest{.id = "box", .policy = {}})));
  corpus.add("commit", 0, encode(Request(CommitRequest{.id = "box", .name = "mine"})));
  corpus.add("fork", 0, encode(Request(ForkRequest{.id = "box", .count = 3})));
  corpus.add("add-layer", 0, encode(Request(AddLayerRequest{})));
  corpus.add("put-image", 0, encode(Request(PutImageRequest{})));
  corpus.add("keep-log", 0, encode(Request(KeepLogRequest{.id = "box"})));
  corpus.add("open-log", 0, encode(Request(OpenLogRequest{.id = "box"})));
  corpus.add("create-volume", 0,
             encode(Request(CreateVolumeRequest{.name = "cache", .bytes = 1 << 30})));
  const std::vector<network::Service> services = {
      {.address = 0x0a600001, .port = 443, .targets = {{.address = 0x0a4d0002, .port = 8000}}}};
  corpus.add("services", 0,
             encode(Request(ServicesRequest{.services = services, .name_server = 5300})));
  corpus.add(
      "replace-files", 0,
      encode(Request(ReplaceFilesRequest{.id = "box", .trees = {some_spec().mounts.back()}})));
  corpus.add("hello", 1, encode(Reply(Hello{.version = "1.0", .network = "10.0.0.0/16"})));
  corpus.add("sandboxes", 1, encode(Reply(Sandboxes{.all = {{.id = "box"}}})));
  corpus.add("volumes", 1, encode(Reply(VolumeList{.all = {{.name = "cache", .created = {}}}})));
  corpus.add("logs", 1, encode(Reply(LogList{.starts = {0, 7}})));
  corpus.add("failed", 1, encode(Reply(Failed{.message = "no"})));
  Record record{.spec = some_spec(), .created = {}};
  record.unit = "u1";
  record.layers = {"sha256:00"};
  corpus.add("record", 2, encode(record));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_protocol_corpora FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  write_guest(Corpus(folder / "guest_protocol_fuzz"));
  write_runtime(Corpus(folder / "runtime_protocol_fuzz"));
  return 0;
}
