#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/checks.h"
#include "linux/netlink_message.h"
#include "linux/netlink_socket.h"

namespace hearth::cli {
namespace {

// An errno, or 0: whether nf_tables answers the question for its generation, which changes nothing.
int ask_nftables() {
  linux::NetlinkSocket socket(NETLINK_NETFILTER);
  linux::NetlinkRequest request((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_GETGEN,
                                NLM_F_REQUEST | NLM_F_ACK);
  request.body(nfgenmsg{.nfgen_family = 0, .version = NFNETLINK_V0, .res_id = 0});
  return socket.exchange(request, "ask for nftables", [](const linux::NetlinkReply&) {}).error;
}

Check check_nftables() {
  Check check{.name = "nftables", .found = "present"};
  try {
    const int error = ask_nftables();
    if (error == 0) return check;
    if (error == EPERM && ::geteuid() != 0) {
      check.found = "hearth-runtime will know as root";
      return check;
    }
    check.found = errno_text(error);
  } catch (const Error& error) {
    check.found = error.what();
  }
  check.health = Health::missing;
  check.lost = "sandboxes have no network: nothing would hold them to their rules";
  check.fix = "modprobe nf_tables; in a container: give it CAP_NET_ADMIN";
  return check;
}

Check check_forwarding() {
  constexpr const char* kSetting = "/proc/sys/net/ipv4/ip_forward";
  Check check{.name = "IP forwarding", .found = "on"};
  if (read_or_empty(kSetting).starts_with('1')) return check;
  if (::geteuid() != 0 || ::access(kSetting, W_OK) == 0) {
    check.found = "off; hearth-runtime turns it on";
    return check;
  }
  check.health = Health::degraded;
  check.found = "off, and not ours to change";
  check.lost = "sandboxes cannot reach anything beyond this host";
  check.fix = "sysctl net.ipv4.ip_forward=1";
  return check;
}

}  // namespace

std::vector<Check> check_network() {
  return {check_nftables(), check_forwarding()};
}

}  // namespace hearth::cli
