// Whom the host asks for names, as far as a sandbox can be sent there too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::network {

// The first IPv4 name server of /etc/resolv.conf. One that is loopback is most often a stub that
// listens to nobody but the host; `upstream`, which is where systemd keeps the real ones, is
// preferred to it. Lines that make no sense are passed over, as resolvers do.
std::optional<std::uint32_t> choose_resolver(std::string_view resolv_conf,
                                             std::string_view upstream);

// The same for this host's files.
std::optional<std::uint32_t> find_host_resolver();

bool is_loopback(std::uint32_t address);

}  // namespace hearth::network
