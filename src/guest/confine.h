// What PID 1 does to itself before it serves, so that everything it will ever start inherits it.
#pragma once

#include <string>

#include "linux/capabilities.h"

namespace hearth::guest {

void bring_up_loopback();

struct HostNames {
  std::string hostname;     // empty: left as it is
  std::string hosts;        // text of /etc/hosts; empty: left as it is
  std::string resolv_conf;  // the same for /etc/resolv.conf
};
// Names the host, and writes the files in /etc that go with a name and a network.
void name_host(const HostNames& names);

// struct sock_filter, one after the other.
void install_filter(const std::string& filter);

// Lets nobody inside set this process's resource limits, which takes the same ids as ours, all six
// of them (prlimit(2)). For the calling thread.
void differ_from_root();

// Hides this process from its neighbours and gives up privileges for good: capabilities, and the
// system calls that it took to get here. Throws Error; a guest that could not do all of it must not
// serve.
void confine(const linux::CapabilitySet& keep, const std::string& closing_filter);

}  // namespace hearth::guest
