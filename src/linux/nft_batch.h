// Changes to one nftables table, made all together or not at all.
//
// An NftBatch collects them, in order; NftSocket::commit gives them to the kernel as one
// transaction: no packet ever sees half of it. The table is of the family inet, for IPv4 and IPv6
// alike. Names must be short and known: they are ours, never input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "linux/netlink_message.h"
#include "linux/netlink_socket.h"

namespace hearth::linux {

// Where packets enter a table. Hooks are NF_INET_...; lower priorities look first.
struct NftHook {
  std::string type = "filter";  // or "nat"
  std::uint32_t hook = 0;
  int priority = 0;
};

class NftBatch {
 public:
  explicit NftBatch(std::string table) : table_(std::move(table)) {}

  // Also when it exists: that makes it safe to delete.
  void add_table();
  void delete_table();

  void add_chain(const std::string& chain);
  void add_chain(const std::string& chain, const NftHook& hook);  // what no rule decides passes
  void flush_chain(const std::string& chain);
  void delete_chain(const std::string& chain);
  // `expressions` as nft_expression.h writes them.
  void add_rule(const std::string& chain, const std::string& expressions);

  // Of IPv4 addresses (four bytes in network order); a map leads from them to verdicts.
  void add_address_set(const std::string& set);
  void add_verdict_map(const std::string& map);
  // What is there already is success; what is not there cannot be deleted.
  void add_element(const std::string& set, const std::string& key);
  void add_go_to(const std::string& map, const std::string& key, const std::string& chain);
  void delete_element(const std::string& set, const std::string& key);

  bool empty() const { return messages_.empty(); }
  const std::string& table() const { return table_; }

 private:
  friend class NftSocket;

  NetlinkRequest& message(std::uint16_t type, std::uint16_t flags);
  void add_set(const std::string& set, const std::string& attributes);
  void change_element(std::uint16_t type, std::uint16_t flags, const std::string& set,
                      const std::string& attributes);

  std::string table_;
  std::vector<NetlinkRequest> messages_;
  std::uint32_t sets_ = 0;
};

// Belongs to the namespace it was opened in. Not thread-safe.
class NftSocket {
 public:
  NftSocket();

  // Throws Error with the kernel's words; then nothing has changed.
  void commit(NftBatch& batch, const std::string& what);

 private:
  NetlinkSocket socket_;
};

}  // namespace hearth::linux
