// Netlink messages as bytes: written, and read back as if a stranger had sent them.
#pragma once

#include <linux/netlink.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hearth::linux {

// One request: a header, a fixed body, attributes. nest() .. end() bracket attributes within one.
class NetlinkRequest {
 public:
  NetlinkRequest(std::uint16_t type, std::uint16_t flags);

  template <typename T>
  NetlinkRequest& body(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append(&value, sizeof value);
    return *this;
  }
  NetlinkRequest& attribute(std::uint16_t type, std::string_view bytes);
  NetlinkRequest& text(std::uint16_t type, const std::string& value);  // with its NUL
  NetlinkRequest& u32(std::uint16_t type, std::uint32_t value);
  // Attributes that were written elsewhere, by netlink_attribute().
  NetlinkRequest& attributes(std::string_view encoded);

  std::size_t nest(std::uint16_t type);
  void end(std::size_t nest);

  // The kernel answers whether it succeeds or fails; for requests made without NLM_F_ACK.
  void want_answer();

  // The finished message, with this sequence number.
  std::string_view bytes(std::uint32_t sequence);

 private:
  void append(const void* data, std::size_t size);

  std::string bytes_;
};

// One attribute as bytes, header and padding included: for parts that are put together before there
// is a message to hold them. Several of them, one after the other, are the value of a nest.
std::string netlink_attribute(std::uint16_t type, std::string_view bytes);
std::string netlink_text(std::uint16_t type, const std::string& value);  // with its NUL
std::string netlink_be32(std::uint16_t type, std::uint32_t value);       // in network order
std::string netlink_nest(std::uint16_t type, std::string_view attributes);

struct NetlinkAttribute {
  std::uint16_t type = 0;
  std::string_view bytes;
};

// Borrows what it was read from.
struct NetlinkReply {
  nlmsghdr header = {};
  std::string_view body;

  // The fixed part at the start of the body. Throws Error(internal) when it is too short.
  template <typename T>
  T fixed() const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    take(sizeof value).copy(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }
  // The attributes after a fixed part of this size.
  std::vector<NetlinkAttribute> attributes(std::size_t fixed_size) const;

 private:
  std::string_view take(std::size_t size) const;
};

// All of these throw Error(internal) for lengths that do not fit.
std::vector<NetlinkReply> parse_netlink_messages(std::string_view bytes);
std::vector<NetlinkAttribute> parse_netlink_attributes(std::string_view bytes);

// What an NLMSG_ERROR message says.
struct NetlinkVerdict {
  int error = 0;     // errno, 0: done
  std::string text;  // the kernel's own words, if it had any
};
NetlinkVerdict parse_netlink_verdict(const NetlinkReply& reply);

// "10.1.2.3" or "fd00::1" as the kernel takes it.
struct IpAddress {
  int family = 0;     // AF_INET or AF_INET6
  std::string bytes;  // 4 or 16, network order
};
std::optional<IpAddress> parse_ip(const std::string& text);
std::string format_ip(int family, std::string_view bytes);

// "02:00:0a:01:02:03" as six bytes, and back.
std::optional<std::string> parse_mac(std::string_view text);
std::string format_mac(std::string_view bytes);

}  // namespace hearth::linux
