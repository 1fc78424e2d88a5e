#include "base/id.h"

#include <sys/random.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace hearth {
namespace {

std::vector<unsigned char> random_bytes(std::size_t count) {
  std::vector<unsigned char> bytes(count);
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = getrandom(bytes.data() + done, count - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("read the kernel's randomness");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

bool is_lower_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

}  // namespace

std::string random_hex(std::size_t bytes) {
  std::string text;
  for (const unsigned char byte : random_bytes(bytes)) text += fmt::format("{:02x}", byte);
  return text;
}

std::string random_alphanumeric(std::size_t count) {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr std::size_t kFair = 256 - 256 % kAlphabet.size();  // what is above would favour some
  std::string text;
  while (text.size() < count) {
    for (const unsigned char byte : random_bytes(count - text.size()))
      if (byte < kFair) text += kAlphabet[byte % kAlphabet.size()];
  }
  return text;
}

std::string new_sandbox_id() {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz234567";
  std::string id = "sb-";
  for (const unsigned char byte : random_bytes(16)) id += kAlphabet[byte % kAlphabet.size()];
  return id;
}

bool is_label(std::string_view text) {
  if (text.empty() || text.size() > 63) return false;
  if (!is_lower_alphanumeric(text.front()) || !is_lower_alphanumeric(text.back())) return false;
  return std::ranges::all_of(text, [](char c) { return is_lower_alphanumeric(c) || c == '-'; });
}

}  // namespace hearth
