// What two sandboxes, or a sandbox and the host, could share without meaning to.
#include <fcntl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "escape/payload.h"

namespace hearth::escape {
namespace {

struct Address {
  sockaddr_un address{};
  socklen_t size = 0;
};

Address abstract_address(const std::string& name) {
  Address result;
  result.address.sun_family = AF_UNIX;
  std::ranges::copy(name.substr(0, 100), result.address.sun_path + 1);
  result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                       std::min<std::size_t>(name.size(), 100));
  return result;
}

int connect_abstract(const std::string& name) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const Address to = abstract_address(name);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&to.address), to.size);
}

key_t key_of(const std::string& name) {
  std::uint32_t key = 2166136261;
  for (const char letter : name) key = (key ^ static_cast<unsigned char>(letter)) * 16777619;
  return static_cast<key_t>(key & 0x7fffffff);
}

// Argument: the name of everything.
void leave_traces(Findings& findings, const Arguments& arguments) {
  const std::string& name = arguments.at(0);
  const key_t key = key_of(name);
  bool all = ::shmget(key, 4096, IPC_CREAT | 0666) >= 0;
  all = all && ::msgget(key, IPC_CREAT | 0666) >= 0 && ::semget(key, 1, IPC_CREAT | 0666) >= 0;
  for (const char* folder : {"/tmp/", "/dev/shm/", "/var/tmp/", "/usr/", "/root/", "/run/"}) {
    const std::string path = folder + name;
    all = all && ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666) >= 0;
  }
  // Not every kernel has them.
  if (::access("/dev/mqueue", F_OK) == 0 &&
      ::mq_open(("/" + name).c_str(), O_CREAT | O_RDWR, 0666, nullptr) < 0)
    std::perror("mq_open");
  const int server = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const Address at = abstract_address(name);
  all = all && ::bind(server, reinterpret_cast<const sockaddr*>(&at.address), at.size) == 0;
  all = all && ::listen(server, 1) == 0;
  findings.must_hold("traces were left", all);
  // Somebody must live for the socket to be there.
  if (::fork() != 0) return;
  for (int fd = 0; fd < 3; ++fd) ::close(fd);
  ::setsid();
  ::sleep(300);
  ::_exit(0);
}

// Arguments: names that others gave.
void find_traces(Findings& findings, const Arguments& arguments) {
  for (const std::string& name : arguments) {
    const key_t key = key_of(name);
    findings.must_fail("shared memory of " + name, ::shmget(key, 0, 0));
    findings.must_fail("messages of " + name, ::msgget(key, 0));
    findings.must_fail("semaphores of " + name, ::semget(key, 0, 0));
    for (const char* folder : {"/tmp/", "/dev/shm/", "/var/tmp/", "/usr/", "/root/", "/run/"})
      findings.must_fail(folder + name, ::access((folder + name).c_str(), F_OK));
    findings.must_fail("queue of " + name, ::mq_open(("/" + name).c_str(), O_RDWR));
    findings.must_fail("/dev/mqueue/" + name, ::access(("/dev/mqueue/" + name).c_str(), F_OK));
    findings.must_fail("socket of " + name, connect_abstract(name));
  }
  // And of those whose names we do not know.
  for (const char* list : {"shm", "msg", "sem"}) {
    const std::string text = read_all(std::string("/proc/sysvipc/") + list);
    findings.must_hold(std::string("no other IPC: ") + list, std::ranges::count(text, '\n') <= 1);
  }
  findings.must_hold("no other sockets", read_all("/proc/net/unix").find('@') == std::string::npos);
}

// Arguments: an abstract name, then paths.
void try_host_sockets(Findings& findings, const Arguments& arguments) {
  findings.must_fail("connect to @" + arguments.at(0), connect_abstract(arguments[0]));
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    Address to;
    to.address.sun_family = AF_UNIX;
    std::ranges::copy(arguments[i].substr(0, 100), to.address.sun_path);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    findings.must_fail(
        "connect to " + arguments[i],
        ::connect(fd, reinterpret_cast<const sockaddr*>(&to.address), sizeof to.address));
  }
  const std::string known = read_all("/proc/net/unix");
  findings.must_hold("not listed", known.find(arguments[0]) == std::string::npos);
}

constexpr std::array kAttempts = {Attempt{"leave-traces", leave_traces},
                                  Attempt{"find-traces", find_traces},
                                  Attempt{"host-sockets", try_host_sockets}};

}  // namespace

std::span<const Attempt> neighbour_attempts() {
  return kAttempts;
}

}  // namespace hearth::escape
