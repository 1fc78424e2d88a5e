// The kernel's files: /proc, /sys, /dev, and what names of the host they show.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <set>

#include "escape/payload.h"

namespace hearth::escape {
namespace {

bool is_null_device(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

bool is_folder_or_link(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode) || S_ISLNK(status.st_mode);
}

// Opening is enough: nothing is written.
int find_writable(Findings& findings, const std::string& path) {
  if (is_folder_or_link(path)) return 0;
  const int fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return 1;
  if (!is_null_device(fd)) findings.must_fail("write " + path, 0);  // what is masked is null
  ::close(fd);
  return 1;
}

bool is_of_a_process(const std::string& path) {
  return std::isdigit(static_cast<unsigned char>(path[6])) != 0 || path.starts_with("/proc/self") ||
         path.starts_with("/proc/thread-self");
}

void try_writing_proc(Findings& findings, const Arguments&) {
  int seen = 0;
  walk("/proc", [&](const std::string& path) {
    if (!is_of_a_process(path)) seen += find_writable(findings, path);
  });
  findings.must_hold("/proc was looked at", seen > 100);
  for (const char* path :
       {"/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
        "/proc/sys/vm/panic_on_oom", "/proc/sys/vm/drop_caches", "/proc/sys/kernel/hostname",
        "/proc/sys/user/max_user_namespaces", "/proc/sys/net/ipv4/ip_forward",
        "/proc/irq/default_smp_affinity", "/proc/sys/fs/binfmt_misc/register"}) {
    findings.must_fail(std::string("write ") + path, ::open(path, O_WRONLY | O_CLOEXEC));
  }
  const int map = ::open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
  findings.must_fail("a new user map", ::write(map, "0 0 1\n", 6));
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  findings.must_fail("be spared by the out-of-memory killer", ::write(score, "-1000", 5));
}

void try_writing_sys(Findings& findings, const Arguments&) {
  int seen = 0;
  walk("/sys", [&](const std::string& path) { seen += find_writable(findings, path); });
  findings.must_hold("/sys was looked at", seen > 100);
  findings.must_fail("a new folder in /sys", ::mkdir("/sys/fs/cgroup/x", 0755));
  findings.must_fail("a new folder in /sys/kernel", ::mkdir("/sys/kernel/x", 0755));
}

bool has_digit_but_zero(const std::string& line) {
  return line.substr(0, line.find(' ')).find_first_not_of('0') != std::string::npos;
}

void look_into_the_kernel(Findings& findings, const Arguments&) {
  for (const char* path :
       {"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/interrupts", "/proc/latency_stats",
        "/proc/sched_debug", "/proc/kmsg", "/proc/kpageflags", "/proc/kpagecount",
        "/proc/vmallocinfo", "/proc/slabinfo", "/proc/pagetypeinfo", "/sys/kernel/notes-none"}) {
    findings.must_hold(std::string("nothing in ") + path, read_all(path).empty());
  }
  for (const char* folder : {"/sys/firmware", "/sys/kernel/debug", "/sys/kernel/tracing",
                             "/sys/kernel/security", "/sys/fs/bpf", "/sys/fs/fuse/connections"}) {
    bool empty = true;
    walk(folder, [&](const std::string&) { empty = false; });
    findings.must_hold(std::string("nothing in ") + folder, empty);
  }
  findings.must_hold("no addresses of the kernel's functions",
                     !has_digit_but_zero(read_all("/proc/kallsyms")));
  findings.must_hold("no addresses of the machine's memory",
                     !has_digit_but_zero(read_all("/proc/iomem").substr(0, 8) + " "));
}

void try_devices(Findings& findings, const Arguments&) {
  struct Device {
    const char* name;
    unsigned mode, major, minor;
  };
  constexpr std::array<Device, 8> kDevices = {{{"sda", S_IFBLK, 8, 0},
                                               {"vda", S_IFBLK, 254, 0},
                                               {"loop0", S_IFBLK, 7, 0},
                                               {"mem", S_IFCHR, 1, 1},
                                               {"kmem", S_IFCHR, 1, 2},
                                               {"null", S_IFCHR, 1, 3},
                                               {"fuse", S_IFCHR, 10, 229},
                                               {"kmsg", S_IFCHR, 1, 11}}};
  for (const char* folder : {"/tmp/", "/dev/", "/dev/shm/", "/dev/pts/", "/usr/", "/mnt/"}) {
    for (const Device& device : kDevices) {
      const std::string path = std::string(folder) + "escape-" + device.name;
      findings.must_fail("make " + path, ::mknod(path.c_str(), device.mode | 0666,
                                                 makedev(device.major, device.minor)));
    }
  }
  for (const char* name : {"kmsg",          "mem",
                           "kmem",          "port",
                           "fuse",          "cuse",
                           "kvm",           "net/tun",
                           "vhost-net",     "vhost-vsock",
                           "vsock",         "sda",
                           "vda",           "vdb",
                           "nvme0",         "loop0",
                           "loop-control",  "mapper/control",
                           "btrfs-control", "rtc0",
                           "hpet",          "snapshot",
                           "uinput",        "userfaultfd",
                           "hwrng",         "console",
                           "tty0",          "ttyS0",
                           "dri/card0",     "nvidia0",
                           "watchdog",      "cpu_dma_latency",
                           "cpu/0/msr"}) {
    const std::string path = std::string("/dev/") + name;
    findings.must_fail("open " + path, ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
  const std::set<std::string> known = {"/dev/null",   "/dev/zero",    "/dev/full",
                                       "/dev/random", "/dev/urandom", "/dev/tty"};
  walk("/dev", [&](const std::string& path) {
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) return;
    if (!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode)) return;
    findings.must_hold("known: " + path, known.contains(path) || path.starts_with("/dev/pts/"));
  });
  findings.must_fail("a file in /dev", ::open("/dev/x", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

// Arguments: texts that only the host knows.
void look_for_host_names(Findings& findings, const Arguments& arguments) {
  for (const char* path :
       {"/proc/self/mountinfo", "/proc/mounts", "/proc/self/mountstats", "/proc/self/cgroup",
        "/proc/1/cgroup", "/proc/self/maps", "/proc/net/unix", "/proc/locks", "/proc/swaps",
        "/proc/net/route", "/etc/hosts", "/etc/resolv.conf", "/etc/mtab", "/proc/1/mountinfo"}) {
    const std::string text = read_all(path);
    for (const std::string& word : arguments) {
      findings.must_hold(std::string(path) + " is silent about " + word,
                         text.find(word) == std::string::npos);
    }
  }
}

// Arguments: paths of the host.
void look_for_host_files(Findings& findings, const Arguments& arguments) {
  for (const std::string& path : arguments) {
    for (const char* way :
         {"", "/..", "/../../../..", "/proc/self/root/..", "/proc/self/cwd/..", "/proc/1/root"}) {
      const std::string whole = way + path;
      findings.must_fail("see " + whole, ::access(whole.c_str(), F_OK));
    }
  }
}

constexpr std::array kAttempts = {
    Attempt{"write-proc", try_writing_proc},       Attempt{"write-sys", try_writing_sys},
    Attempt{"kernel-files", look_into_the_kernel}, Attempt{"devices", try_devices},
    Attempt{"host-names", look_for_host_names},    Attempt{"host-files", look_for_host_files}};

}  // namespace

std::span<const Attempt> file_attempts() {
  return kAttempts;
}

}  // namespace hearth::escape
