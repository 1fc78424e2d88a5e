// Rules, digests, decompression: what needs no folder to write to.
#include <zlib.h>
#include <zstd.h>

#include <gtest/gtest.h>

#include "unpack/decompress.h"
#include "unpack/sha256.h"
#include "unpack/tree_rules.h"
#include "unpack/unpack_testing.h"

namespace hearth::unpack {
namespace {

using Parts = std::vector<std::string>;

TEST(SplitPath, TakesPathsApart) {
  EXPECT_EQ(split_path("a/b"), (Parts{"a", "b"}));
  EXPECT_EQ(split_path("/a//./b/"), (Parts{"a", "b"}));
  EXPECT_EQ(split_path("./"), Parts{});
  EXPECT_EQ(split_path("..."), Parts{"..."});
  EXPECT_EQ(join_path({"a", "b"}), "a/b");
  EXPECT_EQ(join_path({}), ".");
}

TEST(SplitPath, RefusesWhatLeadsElsewhere) {
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += "d/";
  for (const std::string& path :
       {std::string(), std::string(".."), std::string("a/../b"), std::string("/.."),
        std::string("a\0b", 3), std::string(256, 'x'), std::string(5000, '/'), deep}) {
    const auto error = error_of([&] { split_path(path); });
    ASSERT_TRUE(error) << path;
    EXPECT_EQ(error->code(), Code::invalid);
  }
}

TEST(ParseWhiteout, KnowsBothKinds) {
  EXPECT_EQ(parse_whiteout({"a", "b"}).kind, Whiteout::Kind::none);
  EXPECT_EQ(parse_whiteout({"a", ".whatever"}).kind, Whiteout::Kind::none);
  EXPECT_EQ(parse_whiteout({"a", ".wh.b"}).kind, Whiteout::Kind::removed);
  EXPECT_EQ(parse_whiteout({"a", ".wh.b"}).name, "b");
  EXPECT_EQ(parse_whiteout({"a", ".wh..b"}).name, ".b");
  EXPECT_EQ(parse_whiteout({".wh..wh..opq"}).kind, Whiteout::Kind::opaque);
  for (const Parts& parts : {Parts{".wh."}, Parts{".wh.."}, Parts{".wh..."}, Parts{".wh..wh.plnk"},
                             Parts{".wh..wh..opq", "a"}, Parts{".wh.a", "b"}, Parts{".wh..wh."}})
    EXPECT_THROW(parse_whiteout(parts), Error) << join_path(parts);
}

TEST(KeptXattr, LeavesOutWhatSteersTheKernel) {
  EXPECT_TRUE(is_kept_xattr("user.x"));
  EXPECT_TRUE(is_kept_xattr("security.capability"));
  for (const char* name :
       {"user.overlay.opaque", "user.overlay.redirect", "trusted.overlay.redirect",
        "security.selinux", "system.posix_acl_access", "trusted.x", ""})
    EXPECT_FALSE(is_kept_xattr(name)) << name;
  EXPECT_FALSE(is_kept_xattr(std::string_view("user.\0x", 7)));
}

TEST(Budget, CountsBlocksAndHoldsTheLimit) {
  Budget budget(3 * 4096, 2);
  budget.add_folder();
  budget.add_data(1);
  budget.end_file(1);
  EXPECT_EQ(budget.bytes(), 2 * 4096U);
  budget.add_data(4096);
  budget.end_file(4096);
  EXPECT_EQ(error_of([&] { budget.add_data(1); })->code(), Code::exhausted);
  EXPECT_EQ(error_of([&] { budget.add_data(~std::uint64_t{0}); })->code(), Code::exhausted);
  budget.add_entry();
  budget.add_entry();
  EXPECT_EQ(error_of([&] { budget.add_entry(); })->code(), Code::exhausted);
}

TEST(Sha256, IsTheStandardOne) {
  Sha256 sha256;
  sha256.add(std::string_view("a"));
  sha256.add(std::string_view("bc"));
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(sha256.digest(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

// In pieces of `piece` bytes.
std::string inflated(image::Compression compression, const std::string& bytes, std::size_t piece) {
  std::string out;
  const auto decompressor = Decompressor::make(
      compression, [&](std::span<const char> more) { out.append(more.data(), more.size()); });
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    decompressor->add(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
  decompressor->finish();
  return out;
}

struct Method {
  image::Compression compression;
  std::string (*compress)(const std::string&);
};

class DecompressTest : public testing::TestWithParam<Method> {
 protected:
  std::string inflate_pieces(const std::string& bytes, std::size_t piece) {
    return inflated(GetParam().compression, bytes, piece);
  }
  std::string compress(const std::string& text) { return GetParam().compress(text); }
};

TEST_P(DecompressTest, GivesBackWhatWentIn) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i);
  for (const std::size_t piece : {std::size_t{7}, std::size_t{4096}, std::size_t{1} << 20})
    EXPECT_EQ(inflate_pieces(compress(text), piece), text);
  EXPECT_EQ(inflate_pieces(compress(""), 100), "");
  // Several one after the other are one.
  EXPECT_EQ(inflate_pieces(compress("one ") + compress("two"), 5), "one two");
  // Much larger than any buffer, from very little.
  const std::string zeros(std::size_t{3} << 20, '\0');
  EXPECT_EQ(inflate_pieces(compress(zeros), 1 << 20), zeros);
}

TEST_P(DecompressTest, RefusesWhatIsCutOffOrBroken) {
  const std::string whole = compress(std::string(1000, 'x') + "y");
  for (const std::size_t size : {whole.size() - 1, whole.size() / 2, std::size_t{3}}) {
    const auto error = error_of([&] { inflate_pieces(whole.substr(0, size), 10); });
    ASSERT_TRUE(error) << size;
    EXPECT_EQ(error->code(), Code::invalid);
  }
  EXPECT_THROW(inflate_pieces("", 10), Error);
  EXPECT_THROW(inflate_pieces(whole + "garbage", 10), Error);
  EXPECT_THROW(inflate_pieces("garbage", 10), Error);
}

INSTANTIATE_TEST_SUITE_P(Gzip, DecompressTest,
                         testing::Values(Method{image::Compression::gzip, &gzip}));
INSTANTIATE_TEST_SUITE_P(Zstd, DecompressTest,
                         testing::Values(Method{image::Compression::zstd, &zstd}));

TEST(Decompress, ChecksDigestsAndLimits) {
  const std::string text(10'000, 'x');
  const std::string blob = gzip(text);
  const auto digest_of = [](const std::string& bytes) {
    Sha256 sha256;
    sha256.add(bytes);
    return sha256.digest();
  };
  const auto run = [&](const std::string& digest, std::uint64_t max_bytes) {
    const linux::Fd file = file_of(blob);
    linux::Pipe pipe = linux::make_pipe();
    return decompress({.input_fd = file.get(),
                       .output_fd = pipe.write.get(),
                       .compression = image::Compression::gzip,
                       .digest = digest,
                       .max_bytes = max_bytes});
  };
  EXPECT_EQ(run(digest_of(blob), 10'000).digest, digest_of(text));
  EXPECT_EQ(run("", 10'000).bytes, 10'000U);
  EXPECT_EQ(error_of([&] { run("", 9'999); })->code(), Code::exhausted);
  const auto wrong = error_of([&] { run(digest_of(text), 10'000); });
  ASSERT_TRUE(wrong);
  EXPECT_NE(std::string(wrong->what()).find(digest_of(blob)), std::string::npos);
  EXPECT_NE(std::string(wrong->what()).find(digest_of(text)), std::string::npos);
}

}  // namespace
}  // namespace hearth::unpack
