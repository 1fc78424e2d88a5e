// Packets: whom we can reach, and as whom.
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "escape/payload.h"

namespace hearth::escape {
namespace {

constexpr int kPatience = 700;  // milliseconds; refusals are answered at once

sockaddr_in address_of(const std::string& ip, const std::string& port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port.c_str())));
  ::inet_pton(AF_INET, ip.c_str(), &address.sin_addr);
  return address;
}

int dial(int family, const sockaddr* address, socklen_t size) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || ::connect(fd, address, size) == 0) return fd;
  if (errno != EINPROGRESS) return -1;
  pollfd waiting{.fd = fd, .events = POLLOUT, .revents = 0};
  if (::poll(&waiting, 1, kPatience) != 1) {
    errno = ETIMEDOUT;
    return -1;
  }
  socklen_t length = sizeof errno;
  int error = 0;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  errno = error;
  return error == 0 ? fd : -1;
}

// Arguments: pairs of address and port, each of which must not answer.
void try_connecting(Findings& findings, const Arguments& arguments) {
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
    const sockaddr_in to = address_of(arguments[i], arguments[i + 1]);
    findings.must_fail("connect to " + arguments[i],
                       dial(AF_INET, reinterpret_cast<const sockaddr*>(&to), sizeof to));
  }
}

// The same for IPv6, numbers and all.
void try_connecting_6(Findings& findings, const Arguments& arguments) {
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(static_cast<std::uint16_t>(std::atoi(arguments[i + 1].c_str())));
    ::inet_pton(AF_INET6, arguments[i].c_str(), &to.sin6_addr);
    to.sin6_scope_id = ::if_nametoindex("eth0");
    findings.must_fail("connect to " + arguments[i],
                       dial(AF_INET6, reinterpret_cast<const sockaddr*>(&to), sizeof to));
  }
}

std::uint16_t sum_of(const void* bytes, std::size_t size) {
  const auto* words = static_cast<const std::uint16_t*>(bytes);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < size / 2; ++i) sum += words[i];
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~(sum + (sum >> 16)));
}

// Arguments: source, target, port, word. The listener says whether it arrived.
void send_lies(Findings& findings, const Arguments& arguments) {
  const int fd = ::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
  findings.must_hold("there are raw sockets", fd >= 0);
  struct Packet {
    iphdr ip;
    udphdr udp;
    char word[8];
  } packet{};
  const sockaddr_in from = address_of(arguments.at(0), "7");
  const sockaddr_in to = address_of(arguments.at(1), arguments.at(2));
  packet.ip.version = 4;
  packet.ip.ihl = 5;
  packet.ip.ttl = 64;
  packet.ip.protocol = IPPROTO_UDP;
  packet.ip.tot_len = htons(sizeof packet);
  packet.ip.saddr = from.sin_addr.s_addr;
  packet.ip.daddr = to.sin_addr.s_addr;
  packet.ip.check = sum_of(&packet.ip, sizeof packet.ip);
  packet.udp.source = from.sin_port;
  packet.udp.dest = to.sin_port;
  packet.udp.len = htons(sizeof packet.udp + sizeof packet.word);
  std::memcpy(packet.word, arguments.at(3).c_str(), std::min<std::size_t>(8, arguments[3].size()));
  for (int i = 0; i < 3; ++i)
    ::sendto(fd, &packet, sizeof packet, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

// Arguments: target, port, word; as ourselves.
void send_word(Findings& findings, const Arguments& arguments) {
  const sockaddr_in to = address_of(arguments.at(0), arguments.at(1));
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const std::string& word = arguments.at(2);
  for (int i = 0; i < 3; ++i)
    ::sendto(fd, word.data(), word.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  findings.must_hold("sent", true);
}

// Argument: a port. Serves one who connects, then ends: 1 when somebody came.
void serve(Findings& findings, const Arguments& arguments) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in at = address_of("0.0.0.0", arguments.at(0));
  const bool bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  findings.must_hold("bound", bound && ::listen(fd, 4) == 0);
  [[maybe_unused]] const ssize_t told = ::write(1, "ready\n", 6);
  const int client = ::accept(fd, nullptr, nullptr);
  findings.must_hold("somebody came", client >= 0 && ::write(client, "hello", 5) == 5);
}

// Asks the audit system who it is: an answer other than an error is a hole.
bool audit_answers() {
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT);
  if (fd < 0) return false;
  nlmsghdr get{};
  get.nlmsg_len = sizeof get;
  get.nlmsg_type = 1000;  // AUDIT_GET
  get.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  if (::send(fd, &get, sizeof get, 0) < 0) return false;
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, kPatience) != 1) return false;
  struct {
    nlmsghdr head;
    nlmsgerr error;
    char rest[512];
  } answer{};
  ::recv(fd, &answer, sizeof answer, 0);
  return answer.head.nlmsg_type != NLMSG_ERROR || answer.error.error == 0;
}

void try_socket_families(Findings& findings, const Arguments&) {
  struct Family {
    const char* name;
    int number, type, protocol;
  };
  constexpr std::array<Family, 18> kFamilies = {{{"packet", 17, SOCK_RAW, 0x300},
                                                 {"packet, cooked", 17, SOCK_DGRAM, 0x300},
                                                 {"vsock", 40, SOCK_STREAM, 0},
                                                 {"alg", 38, SOCK_SEQPACKET, 0},
                                                 {"key", 15, SOCK_RAW, 2},
                                                 {"xdp", 44, SOCK_RAW, 0},
                                                 {"bluetooth", 31, SOCK_RAW, 1},
                                                 {"can", 29, SOCK_RAW, 1},
                                                 {"tipc", 30, SOCK_STREAM, 0},
                                                 {"rds", 21, SOCK_SEQPACKET, 0},
                                                 {"smc", 43, SOCK_STREAM, 0},
                                                 {"nfc", 39, SOCK_SEQPACKET, 0},
                                                 {"kcm", 41, SOCK_DGRAM, 0},
                                                 {"qipcrtr", 42, SOCK_DGRAM, 0},
                                                 {"x25", 9, SOCK_SEQPACKET, 0},
                                                 {"ax25", 3, SOCK_DGRAM, 0},
                                                 {"pppox", 24, SOCK_STREAM, 0},
                                                 {"mctp", 45, SOCK_DGRAM, 0}}};
  constexpr unsigned long kHigh = 1UL << 32;
  for (const Family& family : kFamilies) {
    const auto number = static_cast<unsigned long>(family.number);
    findings.must_fail(family.name, ::socket(family.number, family.type, family.protocol));
    findings.must_fail(std::string(family.name) + ", high bits",
                       ::syscall(SYS_socket, number | kHigh, family.type, family.protocol));
  }
  findings.must_hold("the audit system does not answer", !audit_answers());
}

// Without NET_ADMIN the network is as it was made.
void try_changing_the_network(Findings& findings, const Arguments&) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  findings.must_fail("take the loopback link down", ::ioctl(fd, SIOCSIFFLAGS, &request));
  std::strcpy(request.ifr_name, "eth0");
  auto* address = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
  *address = address_of("192.0.2.9", "0");
  findings.must_fail("take another address", ::ioctl(fd, SIOCSIFADDR, &request));
  char bridge[16] = "escape";
  findings.must_fail("make a bridge", ::ioctl(fd, SIOCBRADDBR, bridge));
  constexpr int kReplaceRules = 64;
  findings.must_fail("replace the rules",
                     ::setsockopt(fd, IPPROTO_IP, kReplaceRules, request.ifr_name, 8));
  struct {
    nlmsghdr head;
    unsigned char body[16];
  } link{};
  link.head.nlmsg_len = sizeof link;
  link.head.nlmsg_type = 16;  // RTM_NEWLINK
  link.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | 0x400;
  const int route = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  ::send(route, &link, sizeof link, 0);
  struct {
    nlmsghdr head;
    nlmsgerr error;
    char rest[512];
  } answer{};
  ::recv(route, &answer, sizeof answer, 0);
  findings.must_hold("no new links", answer.error.error != 0);
}

constexpr std::array kAttempts = {Attempt{"connect", try_connecting},
                                  Attempt{"connect-6", try_connecting_6},
                                  Attempt{"lie", send_lies},
                                  Attempt{"send", send_word},
                                  Attempt{"serve", serve},
                                  Attempt{"socket-families", try_socket_families},
                                  Attempt{"change-network", try_changing_the_network}};

}  // namespace

std::span<const Attempt> network_attempts() {
  return kAttempts;
}

}  // namespace hearth::escape
