#include "image/image.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "image/unpack_job.h"

namespace hearth::image {
namespace {

TEST(Digest, IsLowerCaseSha256) {
  const std::string digits(64, 'a');
  EXPECT_TRUE(is_digest("sha256:" + digits));
  EXPECT_FALSE(is_digest(digits));
  EXPECT_FALSE(is_digest("sha256:" + std::string(64, 'A')));
  EXPECT_FALSE(is_digest("sha256:" + digits + "0"));
  EXPECT_FALSE(is_digest("sha256:" + std::string(63, 'a') + "/"));
}

TEST(ImageName, IsWhatPeopleAskFor) {
  for (const char* name : {"python", "docker.io/library/python:3.12", "localhost:5000/a_b-c:1",
                           "a@sha256:0123", "Registry.example/x"})
    EXPECT_TRUE(is_image_name(name)) << name;
  for (const char* name : {"", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", ".a", "-a", "a b",
                           "a+b", "a=b", "a\n", "é"})
    EXPECT_FALSE(is_image_name(name)) << name;
  EXPECT_TRUE(is_image_name(std::string(240, 'a')));
  EXPECT_FALSE(is_image_name(std::string(241, 'a')));
}

TEST(UnpackJob, ArrivesAsItWasSent) {
  const Job job{.task = Job::Task::copy,
                .compression = Compression::zstd,
                .digest = "d",
                .max_bytes = 7,
                .overlay_marks = true};
  const Job same = parse_job(encode(job));
  EXPECT_EQ(same.task, job.task);
  EXPECT_EQ(same.compression, job.compression);
  EXPECT_EQ(same.digest, job.digest);
  EXPECT_EQ(same.max_bytes, job.max_bytes);
  EXPECT_TRUE(same.overlay_marks);
  EXPECT_THROW(parse_job(encode(job) + "x"), Error);
  std::string unknown = encode(job);
  unknown[0] = 9;
  EXPECT_THROW(parse_job(unknown), Error);
}

TEST(UnpackReport, IsReadAsIfAStrangerWroteIt) {
  Report report{.code = Code::invalid, .message = "evil\x1b[2J\n" + std::string(10000, 'x')};
  const Report shown = parse_report(encode(report));
  EXPECT_TRUE(shown.message.starts_with("evil?[2J?xx"));
  EXPECT_LE(shown.message.size(), 5000U);
  report.diff_id = "../../x";
  EXPECT_THROW(parse_report(encode(report)), Error);
  EXPECT_THROW(parse_report(""), Error);
  EXPECT_THROW(parse_report(std::string(100, '\xff')), Error);
}

}  // namespace
}  // namespace hearth::image
