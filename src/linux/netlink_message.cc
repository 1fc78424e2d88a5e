#include "linux/netlink_message.h"

#include <arpa/inet.h>

#include <charconv>

#include "base/error.h"
#include "base/ip_text.h"

namespace hearth::linux {
namespace {

std::size_t aligned(std::size_t size) {
  return NLMSG_ALIGN(size);
}

// The next `header.length` bytes without the header, and the rest moved past them and the padding.
// Length counts the header itself.
template <typename Header>
std::string_view take_counted(std::string_view& rest, std::size_t length) {
  if (length < sizeof(Header) || length > rest.size()) {
    fail(Code::internal, "netlink: a part of {} bytes in {}", length, rest.size());
  }
  const std::string_view body =
      rest.substr(0, length).substr(std::min(aligned(sizeof(Header)), length));
  rest.remove_prefix(std::min(aligned(length), rest.size()));
  return body;
}

template <typename Header>
Header peek(std::string_view rest) {
  Header header;
  if (rest.size() < sizeof header) {
    fail(Code::internal, "netlink: {} bytes are no message", rest.size());
  }
  rest.copy(reinterpret_cast<char*>(&header), sizeof header);
  return header;
}

}  // namespace

NetlinkRequest::NetlinkRequest(std::uint16_t type, std::uint16_t flags) {
  const nlmsghdr header{.nlmsg_type = type,
                        .nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags)};
  append(&header, sizeof header);
}

void NetlinkRequest::append(const void* data, std::size_t size) {
  bytes_.append(static_cast<const char*>(data), size);
  bytes_.resize(aligned(bytes_.size()));
}

NetlinkRequest& NetlinkRequest::attribute(std::uint16_t type, std::string_view bytes) {
  return attributes(netlink_attribute(type, bytes));
}

NetlinkRequest& NetlinkRequest::attributes(std::string_view encoded) {
  append(encoded.data(), encoded.size());
  return *this;
}

NetlinkRequest& NetlinkRequest::text(std::uint16_t type, const std::string& value) {
  return attribute(type, std::string_view(value.c_str(), value.size() + 1));
}

NetlinkRequest& NetlinkRequest::u32(std::uint16_t type, std::uint32_t value) {
  return attribute(type, std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
}

std::size_t NetlinkRequest::nest(std::uint16_t type) {
  const std::size_t at = bytes_.size();
  attribute(type, {});
  return at;
}

void NetlinkRequest::end(std::size_t nest) {
  const std::size_t size = bytes_.size() - nest;
  HEARTH_ASSERT(nest < bytes_.size() && size <= UINT16_MAX);
  const auto length = static_cast<std::uint16_t>(size);
  std::memcpy(bytes_.data() + nest + offsetof(nlattr, nla_len), &length, sizeof length);
}

void NetlinkRequest::want_answer() {
  nlmsghdr header = peek<nlmsghdr>(bytes_);
  header.nlmsg_flags |= NLM_F_ACK;
  std::memcpy(bytes_.data(), &header, sizeof header);
}

std::string_view NetlinkRequest::bytes(std::uint32_t sequence) {
  nlmsghdr header = peek<nlmsghdr>(bytes_);
  header.nlmsg_len = static_cast<std::uint32_t>(bytes_.size());
  header.nlmsg_seq = sequence;
  std::memcpy(bytes_.data(), &header, sizeof header);
  return bytes_;
}

std::string netlink_attribute(std::uint16_t type, std::string_view bytes) {
  HEARTH_ASSERT(bytes.size() <= UINT16_MAX - NLA_HDRLEN);
  const nlattr header{.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + bytes.size()),
                      .nla_type = type};
  std::string encoded(reinterpret_cast<const char*>(&header), sizeof header);
  encoded += bytes;
  encoded.resize(aligned(encoded.size()));
  return encoded;
}

std::string netlink_text(std::uint16_t type, const std::string& value) {
  return netlink_attribute(type, std::string_view(value.c_str(), value.size() + 1));
}

std::string netlink_be32(std::uint16_t type, std::uint32_t value) {
  const std::uint32_t swapped = htonl(value);
  return netlink_attribute(
      type, std::string_view(reinterpret_cast<const char*>(&swapped), sizeof swapped));
}

std::string netlink_nest(std::uint16_t type, std::string_view attributes) {
  return netlink_attribute(static_cast<std::uint16_t>(type | NLA_F_NESTED), attributes);
}

std::string_view NetlinkReply::take(std::size_t size) const {
  if (body.size() < size) {
    fail(Code::internal, "netlink: an answer of {} bytes instead of {}", body.size(), size);
  }
  return body.substr(0, size);
}

std::vector<NetlinkAttribute> NetlinkReply::attributes(std::size_t fixed_size) const {
  take(fixed_size);
  return parse_netlink_attributes(body.substr(std::min(aligned(fixed_size), body.size())));
}

std::vector<NetlinkReply> parse_netlink_messages(std::string_view bytes) {
  std::vector<NetlinkReply> messages;
  while (!bytes.empty()) {
    NetlinkReply reply{.header = peek<nlmsghdr>(bytes)};
    reply.body = take_counted<nlmsghdr>(bytes, reply.header.nlmsg_len);
    messages.push_back(reply);
  }
  return messages;
}

std::vector<NetlinkAttribute> parse_netlink_attributes(std::string_view bytes) {
  std::vector<NetlinkAttribute> attributes;
  while (!bytes.empty()) {
    const nlattr header = peek<nlattr>(bytes);
    attributes.push_back({.type = static_cast<std::uint16_t>(header.nla_type & NLA_TYPE_MASK),
                          .bytes = take_counted<nlattr>(bytes, header.nla_len)});
  }
  return attributes;
}

NetlinkVerdict parse_netlink_verdict(const NetlinkReply& reply) {
  const auto fixed = reply.fixed<nlmsgerr>();
  NetlinkVerdict verdict{.error = -fixed.error};
  if ((reply.header.nlmsg_flags & NLM_F_ACK_TLVS) == 0) return verdict;

  // After the error comes the request: whole, unless its header alone was asked for.
  std::size_t offset = sizeof fixed;
  if ((reply.header.nlmsg_flags & NLM_F_CAPPED) == 0) {
    offset = sizeof fixed.error + std::size_t{fixed.msg.nlmsg_len};
  }
  for (const NetlinkAttribute& attribute : reply.attributes(offset)) {
    if (attribute.type != NLMSGERR_ATTR_MSG) continue;
    verdict.text = std::string(attribute.bytes.substr(0, attribute.bytes.find('\0')));
  }
  return verdict;
}

std::optional<IpAddress> parse_ip(const std::string& text) {
  const auto as_bytes = [](const auto& address) {
    return std::string(reinterpret_cast<const char*>(&address), sizeof address);
  };
  if (const auto v4 = parse_ipv4(text)) return IpAddress{.family = AF_INET, .bytes = as_bytes(*v4)};
  if (const auto v6 = parse_ipv6(text))
    return IpAddress{.family = AF_INET6, .bytes = as_bytes(*v6)};
  return std::nullopt;
}

std::string format_ip(int family, std::string_view bytes) {
  const std::size_t size = family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr);
  char text[INET6_ADDRSTRLEN];
  if (bytes.size() != size || ::inet_ntop(family, bytes.data(), text, sizeof text) == nullptr) {
    fail(Code::internal, "netlink: {} bytes are no address of family {}", bytes.size(), family);
  }
  return text;
}

std::optional<std::string> parse_mac(std::string_view text) {
  constexpr std::size_t kTextSize = 17;
  if (text.size() != kTextSize) return std::nullopt;
  std::string bytes;
  for (std::size_t at = 0; at < kTextSize; at += 3) {
    unsigned value = 0;
    const char* first = text.data() + at;
    const auto [end, error] = std::from_chars(first, first + 2, value, 16);
    if (error != std::errc() || end != first + 2) return std::nullopt;
    if (at + 2 < kTextSize && text[at + 2] != ':') return std::nullopt;
    bytes += static_cast<char>(value);
  }
  return bytes;
}

std::string format_mac(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    if (!text.empty()) text += ':';
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

}  // namespace hearth::linux
