#include "unpack/tar_reader.h"

#include <algorithm>

#include "base/error.h"

namespace hearth::unpack {
namespace {

// Long names, extended attributes (64 KiB each at most on Linux), the map of a sparse file.
constexpr std::uint64_t kMaxExtendedHeader = std::uint64_t{1} << 20;
// 'x', 'L' and 'K' in front of one entry; three are usual.
constexpr int kMaxExtendedHeaders = 8;
constexpr std::size_t kMaxExtents = 65536;
// Beyond what file systems take, and far from where sums of two overflow.
constexpr std::uint64_t kMaxFileSize = std::uint64_t{1} << 50;

std::uint64_t padding_after(std::uint64_t size) {
  return (kTarBlock - size % kTarBlock) % kTarBlock;
}

TarEntry::Kind kind_of(char type, const std::string& path) {
  switch (type) {
    case '\0':
      // How a folder looked before there was a type for it.
      return path.ends_with('/') ? TarEntry::Kind::folder : TarEntry::Kind::file;
    case '0':
    case '7':  // "contiguous"
    case 'S':
      return TarEntry::Kind::file;
    case '1':
      return TarEntry::Kind::hard_link;
    case '2':
      return TarEntry::Kind::symlink;
    case '3':
    case '4':
      return TarEntry::Kind::device;
    case '5':
      return TarEntry::Kind::folder;
    case '6':
      return TarEntry::Kind::fifo;
    default:
      fail(Code::invalid, "'{}': an entry of unknown type {}", path, static_cast<int>(type));
  }
}

// Those of GNU's end with a NUL.
std::string without_nul(std::string text) {
  if (const std::size_t end = text.find('\0'); end != std::string::npos) text.resize(end);
  return text;
}

// In order, apart, within the file; and they are all the data there is.
void check_extents(const TarEntry& entry, std::uint64_t data_size) {
  std::uint64_t end = 0;
  std::uint64_t sum = 0;
  for (const Extent& extent : entry.extents) {
    if (extent.offset < end || extent.offset > entry.size ||
        extent.length > entry.size - extent.offset)
      fail(Code::invalid, "'{}': a sparse file whose map makes no sense", entry.path);
    end = extent.offset + extent.length;
    sum += extent.length;
  }
  if (sum != data_size)
    fail(Code::invalid, "'{}': a sparse file with {} bytes, its map has {}", entry.path, data_size,
         sum);
}

}  // namespace

void TarReader::finish_entry() {
  input_.skip(data_left_ + padding_left_);
  data_left_ = 0;
  padding_left_ = 0;
}

std::optional<TarHeader> TarReader::next_header() {
  finish_entry();
  TarBlock block;
  if (!input_.read_all(block)) return std::nullopt;
  if (is_zero(block)) {
    if (input_.read_all(block) && !is_zero(block))
      fail(Code::invalid, "a block of zeros between the entries");
    return std::nullopt;
  }
  try {
    return parse_tar_header(block);
  } catch (const Error& error) {
    fail(Code::invalid, "the archive is damaged or no tar archive: {}", error.what());
  }
}

std::string TarReader::read_extended(const TarHeader& header) {
  if (header.size > kMaxExtendedHeader)
    fail(Code::invalid, "an extended header of {} bytes, more than {}", header.size,
         kMaxExtendedHeader);
  std::string text(header.size, '\0');
  if (!text.empty() && !input_.read_all(text)) fail(Code::invalid, "the archive is cut off");
  input_.skip(padding_after(header.size));
  return text;
}

std::optional<TarEntry> TarReader::next() {
  PaxFields pax;
  std::optional<std::string> long_path;
  std::optional<std::string> long_link;
  for (int extended = 0; extended <= kMaxExtendedHeaders; ++extended) {
    std::optional<TarHeader> header = next_header();
    if (!header) {
      if (extended > 0) fail(Code::invalid, "the archive ends with an extended header");
      return std::nullopt;
    }
    switch (header->type) {
      case 'x':
        pax = parse_pax(read_extended(*header));
        continue;
      case 'g':
        // For all that follow: comments in practice (git's commit id). Who reads images elsewhere
        // ignores them too. They do not count as belonging to an entry.
        read_extended(*header);
        continue;
      case 'L':
        long_path = without_nul(read_extended(*header));
        continue;
      case 'K':
        long_link = without_nul(read_extended(*header));
        continue;
      default:
        break;
    }
    if (long_path) header->path = *std::move(long_path);
    if (long_link) header->link = *std::move(long_link);
    return complete(*header, pax);
  }
  fail(Code::invalid, "more than {} extended headers for one entry", kMaxExtendedHeaders);
}

TarEntry TarReader::complete(const TarHeader& header, const PaxFields& pax) {
  TarEntry entry;
  entry.path = pax.path.value_or(header.path);
  entry.link = pax.link.value_or(header.link);
  entry.kind = kind_of(header.type, entry.path);
  entry.mode = header.mode;
  entry.uid = pax.uid.value_or(header.uid);
  entry.gid = pax.gid.value_or(header.gid);
  entry.mtime = pax.mtime.value_or(PaxTime{.seconds = header.mtime});
  entry.xattrs = pax.xattrs;
  const std::uint64_t size = pax.size.value_or(header.size);
  if (size > kMaxFileSize) fail(Code::invalid, "'{}': a file of {} bytes", entry.path, size);
  if (header.type == '\0' && entry.kind == TarEntry::Kind::folder && size > 0)
    fail(Code::invalid, "'{}': a folder with data", entry.path);
  // Some tars say how large a link's file or a folder is; no data follows.
  if (entry.kind != TarEntry::Kind::file) return entry;

  data_left_ = size;
  padding_left_ = padding_after(size);
  entry.size = size;
  if (header.type == 'S' || pax.sparse) {
    read_sparse(header, pax, entry);
  } else if (size > 0) {
    entry.extents = {{.offset = 0, .length = size}};
  }
  return entry;
}

void TarReader::read_sparse(const TarHeader& header, const PaxFields& pax, TarEntry& entry) {
  if (header.type == 'S') {
    entry.extents = header.extents;
    entry.size = header.real_size;
    bool more = header.more_extents;
    while (more) {
      TarBlock block;
      if (!input_.read_all(block)) fail(Code::invalid, "the archive is cut off");
      more = parse_more_extents(block, entry.extents);
      if (entry.extents.size() > kMaxExtents) break;
    }
  } else {
    if (pax.sparse_name) entry.path = *pax.sparse_name;
    if (!pax.sparse_size) fail(Code::invalid, "'{}': a sparse file without a size", entry.path);
    entry.size = *pax.sparse_size;
    entry.extents = pax.sparse_map_in_data ? read_map_in_data() : pax.extents;
  }
  if (entry.extents.size() > kMaxExtents)
    fail(Code::invalid, "'{}': a sparse file with more than {} parts", entry.path, kMaxExtents);
  if (entry.size > kMaxFileSize)
    fail(Code::invalid, "'{}': a file of {} bytes", entry.path, entry.size);
  check_extents(entry, data_left_);
}

// Version 1.0: decimal numbers, each with a newline, the first says how many pairs follow; padded
// to whole blocks.
std::vector<Extent> TarReader::read_map_in_data() {
  constexpr std::size_t kMaxDigits = 20;
  TarBlock block;
  std::size_t at = block.size();
  const auto next_number = [&] {
    std::string digits;
    while (true) {
      if (at == block.size()) {
        if (data_left_ < block.size() || !input_.read_all(block))
          fail(Code::invalid, "a sparse file whose map is cut off");
        data_left_ -= block.size();
        at = 0;
      }
      const char c = block[at++];
      if (c == '\n') return parse_decimal(digits);
      digits += c;
      if (digits.size() > kMaxDigits) fail(Code::invalid, "a sparse file whose map makes no sense");
    }
  };
  const std::uint64_t count = next_number();
  if (count > kMaxExtents)
    fail(Code::invalid, "a sparse file with more than {} parts", kMaxExtents);
  std::vector<Extent> extents;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t offset = next_number();
    extents.push_back({.offset = offset, .length = next_number()});
  }
  return extents;
}

std::size_t TarReader::read_data(std::span<char> into) {
  const std::size_t wanted = std::min<std::uint64_t>(into.size(), data_left_);
  if (wanted == 0) return 0;
  const std::size_t got = input_.read(into.first(wanted));
  if (got == 0) fail(Code::invalid, "the archive is cut off");
  data_left_ -= got;
  return got;
}

}  // namespace hearth::unpack
