// What an nftables rule is made of, as the kernel reads it (linux/netfilter/nf_tables.h): every
// function returns one expression, and a rule is some of them, one after the other. A test that
// does not hold ends its rule.
//
// Loads put something of the packet into the one register that we use; tests look at it there.
// Addresses and ports are bytes in network order; the kernel's own numbers are plain.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::linux::nft {

std::string load_meta(std::uint32_t key);       // NFT_META_...
std::string load_conntrack(std::uint32_t key);  // NFT_CT_...
// Where the first packet of the connection was sent to, before anybody's address translation; IPv4.
std::string load_original_destination();
// NFTA_FIB_F_... and NFT_FIB_RESULT_...: what the routing table says about an address.
std::string load_route(std::uint32_t flags, std::uint32_t result);
std::string load_network_header(std::uint32_t offset, std::uint32_t size);
std::string load_transport_header(std::uint32_t offset, std::uint32_t size);

std::string keep_bits(std::string_view mask);
std::string is(std::string_view bytes);
std::string is_not(std::string_view bytes);
std::string at_least(std::string_view bytes);
std::string at_most(std::string_view bytes);
std::string is_in(const std::string& set);
// By chance, for one packet in so many.
std::string one_in(std::uint32_t many);
// Ends with the verdict that the map has for it, if it has one.
std::string verdict_of(const std::string& map);

std::string accept();
std::string drop();
std::string jump_to(const std::string& chain);  // and back, when nothing there decides
std::string go_to(const std::string& chain);    // without coming back
std::string refuse_with_reset();                // TCP only
std::string refuse_as_prohibited();             // by ICMP

std::string masquerade();
std::string send_on_to(std::string_view address, std::string_view port);  // DNAT; IPv4

// A number as the kernel holds it in a register.
std::string number(std::uint32_t value);
std::string byte(std::uint8_t value);

// The value part of an element whose verdict is "go to this chain".
std::string go_to_verdict(const std::string& chain);

}  // namespace hearth::linux::nft
