#include "unpack/tar_header.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/error.h"

namespace hearth::unpack {
namespace {

// Where a field is in its block; POSIX pax(1) has the table, GNU tar's tar.h the rest.
struct Field {
  std::size_t offset;
  std::size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kMode{100, 8};
constexpr Field kUid{108, 8};
constexpr Field kGid{116, 8};
constexpr Field kSize{124, 12};
constexpr Field kMtime{136, 12};
constexpr Field kChecksum{148, 8};
constexpr Field kType{156, 1};
constexpr Field kLink{157, 100};
constexpr Field kMagic{257, 8};  // with the version
constexpr Field kPrefix{345, 155};
constexpr Field kGnuSparse{386, 96};
constexpr Field kGnuIsExtended{482, 1};
constexpr Field kGnuRealSize{483, 12};
constexpr Field kExtensionSparse{0, 504};
constexpr Field kExtensionIsExtended{504, 1};

constexpr std::string_view kGnuMagic("ustar  \0", 8);
constexpr std::string_view kPosixMagic("ustar\0", 6);

std::string_view field(const TarBlock& block, Field where) {
  return std::string_view(block.data(), block.size()).substr(where.offset, where.size);
}

// Up to the first NUL, if there is one.
std::string text(const TarBlock& block, Field where) {
  const std::string_view bytes = field(block, where);
  return std::string(bytes.substr(0, bytes.find('\0')));
}

// GNU's way to write what octal digits have no room for: the top bit is set, the rest is a big-
// endian number in two's complement.
std::int64_t parse_base256(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes.front());
  const bool negative = (first & 0x40) != 0;
  // The sign's copies fill what an int64 has no bytes for.
  const std::size_t surplus = bytes.size() - std::min<std::size_t>(bytes.size(), 8);
  std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto byte = static_cast<unsigned char>(bytes[i]);
    if (i == 0) byte = negative ? (byte | 0x80) : (byte & 0x3f);
    if (i < surplus && byte != (negative ? 0xff : 0)) fail(Code::invalid, "a number too large");
    value = value << 8 | byte;
  }
  const auto result = static_cast<std::int64_t>(value);
  if ((result < 0) != negative) fail(Code::invalid, "a number too large");
  return result;
}

// Octal digits with spaces or NULs around them; nothing at all is 0.
std::uint64_t parse_octal(std::string_view bytes) {
  constexpr std::string_view kBlank(" \0", 2);
  const std::size_t begin = bytes.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return 0;
  bytes.remove_prefix(begin);
  const std::string_view digits = bytes.substr(0, bytes.find_first_of(kBlank));
  std::uint64_t value = 0;
  // 12 digits, the longest field, are 36 bits: no overflow.
  for (const char c : digits) {
    if (c < '0' || c > '7') fail(Code::invalid, "a number with a digit that is none");
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

std::int64_t parse_signed(const TarBlock& block, Field where) {
  const std::string_view bytes = field(block, where);
  if ((static_cast<unsigned char>(bytes.front()) & 0x80) != 0) return parse_base256(bytes);
  return static_cast<std::int64_t>(parse_octal(bytes));
}

std::uint64_t parse_number(const TarBlock& block, Field where) {
  const std::int64_t value = parse_signed(block, where);
  if (value < 0) fail(Code::invalid, "a negative number");
  return static_cast<std::uint64_t>(value);
}

// The sum of all bytes, those of the checksum itself counted as spaces. Some old tars added up
// signed bytes.
void check_sum(const TarBlock& block) {
  std::int64_t sum = 0;
  std::int64_t signed_sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.size;
    const char byte = own ? ' ' : block[i];
    sum += static_cast<unsigned char>(byte);
    signed_sum += static_cast<signed char>(byte);
  }
  const auto said = static_cast<std::int64_t>(parse_octal(field(block, kChecksum)));
  if (said != sum && said != signed_sum) fail(Code::invalid, "a header's checksum is wrong");
}

// Pairs of offset and length up to the first empty one.
void parse_extents(const TarBlock& block, Field where, std::vector<Extent>& extents) {
  constexpr std::size_t kNumber = 12;
  for (std::size_t at = where.offset; at < where.offset + where.size; at += 2 * kNumber) {
    if (block[at] == '\0') return;
    extents.push_back({.offset = parse_number(block, {at, kNumber}),
                       .length = parse_number(block, {at + kNumber, kNumber})});
  }
}

}  // namespace

bool is_zero(const TarBlock& block) {
  return std::ranges::all_of(block, [](char c) { return c == '\0'; });
}

TarHeader parse_tar_header(const TarBlock& block) {
  check_sum(block);
  TarHeader header;
  header.type = block[kType.offset];
  header.path = text(block, kName);
  header.link = text(block, kLink);
  header.mode = static_cast<std::uint32_t>(parse_number(block, kMode) & 07777);
  header.uid = parse_number(block, kUid);
  header.gid = parse_number(block, kGid);
  header.size = parse_number(block, kSize);
  header.mtime = parse_signed(block, kMtime);
  const bool gnu = field(block, kMagic) == kGnuMagic;
  if (field(block, kMagic).starts_with(kPosixMagic)) {
    const std::string prefix = text(block, kPrefix);
    if (!prefix.empty()) header.path = prefix + "/" + header.path;
  }
  if (gnu && header.type == 'S') {
    parse_extents(block, kGnuSparse, header.extents);
    header.more_extents = block[kGnuIsExtended.offset] != '\0';
    header.real_size = parse_number(block, kGnuRealSize);
  }
  return header;
}

bool parse_more_extents(const TarBlock& block, std::vector<Extent>& extents) {
  parse_extents(block, kExtensionSparse, extents);
  return block[kExtensionIsExtended.offset] != '\0';
}

}  // namespace hearth::unpack
