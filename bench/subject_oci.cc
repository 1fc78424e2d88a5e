// crun and runc: the same bundle, the same words.
#include <array>
#include <filesystem>
#include <fstream>

#include "base/json_text.h"
#include "bench/subject.h"
#include "bench/workshop.h"

namespace hearth::bench {
namespace {

namespace fs = std::filesystem;

// What `runc spec` writes, with a user namespace and a cgroup namespace, with the limits that a
// sandbox of ours has, and without the mount of the cgroup file system and the limit of open files.
// There is no seccomp filter and no writable layer, so these have less to do than Hearth.
constexpr const char* kConfig = R"({{
  "ociVersion": "1.0.2",
  "process": {{
    "terminal": false, "user": {{"uid": 0, "gid": 0}}, "args": {args}, "cwd": "/",
    "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
    "capabilities": {{"bounding": [{caps}], "effective": [{caps}], "permitted": [{caps}]}},
    "noNewPrivileges": true
  }},
  "root": {{"path": {rootfs}, "readonly": true}},
  "hostname": "bench",
  "mounts": [
    {{"destination": "/proc", "type": "proc", "source": "proc"}},
    {{"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
      "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]}},
    {{"destination": "/dev/pts", "type": "devpts", "source": "devpts",
      "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]}},
    {{"destination": "/dev/shm", "type": "tmpfs", "source": "shm",
      "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]}},
    {{"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue",
      "options": ["nosuid", "noexec", "nodev"]}},
    {{"destination": "/sys", "type": "sysfs", "source": "sysfs",
      "options": ["nosuid", "noexec", "nodev", "ro"]}}
  ],
  "linux": {{
    "namespaces": [{{"type": "pid"}}, {{"type": "network"}}, {{"type": "ipc"}}, {{"type": "uts"}},
                   {{"type": "mount"}}, {{"type": "user"}}, {{"type": "cgroup"}}],
    "uidMappings": [{{"containerID": 0, "hostID": {root_id}, "size": 65536}}],
    "gidMappings": [{{"containerID": 0, "hostID": {root_id}, "size": 65536}}],
    "resources": {{"memory": {{"limit": {memory}}}, "cpu": {{"quota": {quota}, "period": 100000}},
                   "pids": {{"limit": {pids}}}}},
    "maskedPaths": ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys",
                    "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
                    "/proc/sched_debug", "/sys/firmware", "/proc/scsi"],
    "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
  }}
}}
)";

void write_bundle(const Workshop& workshop, const std::string& folder, const std::string& args) {
  const runtime::Limits limits;
  std::ofstream file(folder + "/config.json");
  file << fmt::format(fmt::runtime(kConfig), fmt::arg("args", args),
                      fmt::arg("caps", R"("CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE")"),
                      fmt::arg("rootfs", json_quote(workshop.rootfs())),
                      fmt::arg("root_id", Workshop::kRootId),
                      fmt::arg("memory", limits.memory_bytes),
                      fmt::arg("quota", limits.cpu_millis * 100), fmt::arg("pids", limits.pids));
  file.close();
  if (!file) fail(Code::internal, "write a bundle in '{}'", folder);
}

// The command lines of one runtime.
class Oci {
 public:
  Oci(const Workshop& workshop, const std::string& name)
      : workshop_(workshop),
        program_(find_program(name)),
        state_(workshop.make_folder(name + "-state")),
        once_(workshop.make_folder(name + "-once")),
        forever_(workshop.make_folder(name + "-forever")) {
    write_bundle(workshop, once_, R"(["/noop"])");
    write_bundle(workshop, forever_, R"(["/noop", "forever"])");
  }
  Oci(const Oci&) = delete;
  Oci& operator=(const Oci&) = delete;
  // Whatever is left: of a command that was killed, for instance.
  ~Oci() {
    std::error_code ignored;
    std::vector<std::string> left;
    for (const auto& entry : fs::directory_iterator(state_, ignored))
      left.push_back(entry.path().filename());
    for (const std::string& id : left) remove(id);
  }

  std::vector<std::string> run(const std::string& id) const {
    return {program_, "--root", state_, "run", "--bundle", once_, id};
  }
  std::vector<std::string> exec(const std::string& id) const {
    return {program_, "--root", state_, "exec", id, "/noop"};
  }
  std::vector<std::string> exec_forever(const std::string& id) const {
    return {program_, "--root", state_, "exec", "--detach", id, "/noop", "forever"};
  }
  std::vector<std::string> pause(const std::string& id) const {
    return {program_, "--root", state_, "pause", id};
  }
  std::vector<std::string> resume(const std::string& id) const {
    return {program_, "--root", state_, "resume", id};
  }

  // A container in which nothing happens.
  struct Container {
    std::string id;
    pid_t pid = 0;
  };
  Container start() const {
    Container container{.id = workshop_.new_name()};
    const std::string pid_file = fmt::format("{}/{}.pid", forever_, container.id);
    run_command({program_, "--root", state_, "run", "--detach", "--pid-file", pid_file, "--bundle",
                 forever_, container.id});
    std::ifstream(pid_file) >> container.pid;
    if (container.pid <= 0) fail(Code::internal, "'{}' wrote no pid", program_);
    return container;
  }
  void remove(const std::string& id) const {
    try {
      run_command({program_, "--root", state_, "delete", "--force", id});
    } catch (const Error& error) {
      std::fprintf(stderr, "hearth-bench: remove '%s': %s\n", id.c_str(), error.what());
    }
  }

  std::string new_name() const { return workshop_.new_name(); }
  std::string version() const { return first_line_of({program_, "--version"}); }

 private:
  const Workshop& workshop_;
  std::string program_;
  std::string state_;    // where it keeps what it knows of its containers
  std::string once_;     // bundle whose program ends
  std::string forever_;  // bundle whose program does not
};

class OciCycles final : public Work {
 public:
  explicit OciCycles(const Oci& oci) : oci_(oci) {}

  double do_once() override { return time_command(oci_.run(oci_.new_name()), witness_); }

 private:
  const Oci& oci_;
  Witness witness_;
};

// A container that lives on, gone with this object.
class OciContainer {
 public:
  explicit OciContainer(const Oci& oci) : oci_(oci), container_(oci.start()) {}
  OciContainer(const OciContainer&) = delete;
  OciContainer& operator=(const OciContainer&) = delete;
  ~OciContainer() { oci_.remove(container_.id); }

  const std::string& id() const { return container_.id; }

 private:
  const Oci& oci_;
  Oci::Container container_;
};

class OciExecs final : public Work {
 public:
  explicit OciExecs(const Oci& oci) : container_(oci), words_(oci.exec(container_.id())) {}

  double do_once() override { return time_commands({words_}); }

 private:
  OciContainer container_;
  std::vector<std::string> words_;
};

class OciPauses final : public Work {
 public:
  explicit OciPauses(const Oci& oci)
      : container_(oci), words_({oci.pause(container_.id()), oci.resume(container_.id())}) {
    // It has one process already.
    for (unsigned i = 1; i < kPausedProcesses; ++i) run_command(oci.exec_forever(container_.id()));
  }

  double do_once() override { return time_commands(words_); }

 private:
  OciContainer container_;
  std::vector<std::vector<std::string>> words_;
};

class OciIdle final : public IdleSandboxes {
 public:
  explicit OciIdle(const Oci& oci) : oci_(oci) {}
  OciIdle(const OciIdle&) = delete;
  OciIdle& operator=(const OciIdle&) = delete;
  ~OciIdle() override {
    for (const Oci::Container& container : containers_) oci_.remove(container.id);
  }

  void add(unsigned count) override {
    for (unsigned i = 0; i < count; ++i) containers_.push_back(oci_.start());
  }

  std::vector<pid_t> roots() const override {
    std::vector<pid_t> pids;
    for (const Oci::Container& container : containers_) pids.push_back(container.pid);
    return pids;
  }

 private:
  const Oci& oci_;
  std::vector<Oci::Container> containers_;
};

class OciSubject final : public Subject {
 public:
  OciSubject(const Workshop& workshop, const std::string& name) : oci_(workshop, name) {}

  std::unique_ptr<Work> make_cycles() override { return std::make_unique<OciCycles>(oci_); }
  std::vector<std::string> cycle_words() override { return oci_.run(oci_.new_name()); }
  std::unique_ptr<Work> make_execs() override { return std::make_unique<OciExecs>(oci_); }
  std::unique_ptr<Work> make_pauses() override { return std::make_unique<OciPauses>(oci_); }
  std::unique_ptr<IdleSandboxes> make_idle_sandboxes() override {
    return std::make_unique<OciIdle>(oci_);
  }
  std::string version() const override { return oci_.version(); }

 private:
  Oci oci_;
};

}  // namespace

std::unique_ptr<Subject> make_crun(const Workshop& workshop) {
  return std::make_unique<OciSubject>(workshop, "crun");
}

std::unique_ptr<Subject> make_runc(const Workshop& workshop) {
  return std::make_unique<OciSubject>(workshop, "runc");
}

}  // namespace hearth::bench
