#include "cli/image_names.h"

#include <cstdio>
#include <memory>

#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/command_line.h"
#include "cli/debian.h"
#include "cli/image.h"
#include "cli/image_progress.h"

namespace hearth::cli {
namespace {

using Words = std::vector<std::string>;

template <typename T>
T parse(const Words& words) {
  return std::get<T>(std::get<ImageOrder>(parse_order(split_command_line(words))));
}

std::string complaint(const Words& words) {
  try {
    parse_order(split_command_line(words));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    return error.what();
  }
  return {};
}

TEST(ImageCommandLine, Pull) {
  const auto options = parse<ImagePullOptions>(
      {"image", "pull", "--mirror", "a", "--mirror", "http://b", "-u", "me", "--password-stdin",
       "--plain-http", "-q", "x:1", "y", "--state-dir", "/s"});
  EXPECT_EQ(options.names, (Words{"x:1", "y"}));
  EXPECT_EQ(options.mirrors, (Words{"a", "http://b"}));
  EXPECT_EQ(options.user, "me");
  EXPECT_TRUE(options.plain_http);
  EXPECT_TRUE(options.quiet);
  EXPECT_EQ(options.state_dir, "/s");
  EXPECT_FALSE(parse<ImagePullOptions>({"--state-dir", "/s", "image", "pull", "x"}).plain_http);
}

TEST(ImageCommandLine, ImportTakesACommand) {
  const auto archive = parse<ImageImportOptions>(
      {"image", "import", "root.tar", "--name", "x", "-e", "A=b", "--", "sh", "-l"});
  EXPECT_EQ(archive.path, "root.tar");
  EXPECT_EQ(archive.config.command, (Words{"sh", "-l"}));
  EXPECT_EQ(archive.config.environment, Words{"A=b"});

  const auto debian = parse<ImageImportOptions>(
      {"image", "import", "--debian", "bookworm", "--include", "git,python3", "--", "bash"});
  EXPECT_EQ(debian.name, "debian:bookworm");
  EXPECT_EQ(debian.path, "");
  EXPECT_EQ(debian.debian.include, (Words{"git", "python3"}));
  EXPECT_EQ(debian.config.command, Words{"bash"});
}

TEST(ImageCommandLine, TheOthers) {
  EXPECT_EQ(parse<ImageLoadOptions>({"image", "load"}).path, "-");
  EXPECT_EQ(parse<ImageLoadOptions>({"image", "load", "x", "--name", "y"}).name, "y");
  EXPECT_EQ(parse<ImageLsOptions>({"image", "ls", "-q"}).format, Format::id);
  EXPECT_EQ(parse<ImageLsOptions>({"image", "ls", "-o", "json"}).format, Format::json);
  EXPECT_EQ(parse<ImageRmOptions>({"image", "rm", "a", "b"}).names, (Words{"a", "b"}));
  EXPECT_EQ(parse<ImageInspectOptions>({"image", "inspect", "a"}).names, Words{"a"});
}

TEST(ImageCommandLine, SaysWhatToWriteInstead) {
  EXPECT_NE(complaint({"image", "push"}).find("hearth image --help"), std::string::npos);
  EXPECT_NE(complaint({"image", "pull"}).find("python:3.12"), std::string::npos);
  EXPECT_NE(complaint({"image", "pull", "-u", "me", "x"}).find("--password-stdin"),
            std::string::npos);
  EXPECT_NE(complaint({"image", "import", "x.tar"}).find("--name"), std::string::npos);
  EXPECT_NE(
      complaint({"image", "import", "x.tar", "--name", "y", "--include", "z"}).find("--debian"),
      std::string::npos);
  EXPECT_NE(complaint({"image", "pull", "--nonsense", "x"}).find("hearth image pull --help"),
            std::string::npos);
  EXPECT_NE(complaint({"image", "load", "a", "b"}).find("'b'"), std::string::npos);
}

TEST(ImageCommandLine, Help) {
  for (const Words& words : {Words{"image"}, Words{"image", "--help"}, Words{"help", "image"}}) {
    const auto help = std::get<Help>(parse_order(split_command_line(words)));
    EXPECT_NE(help.text.find("  pull "), std::string::npos);
  }
  const auto help = std::get<Help>(parse_order(split_command_line({"image", "pull", "--help"})));
  EXPECT_NE(help.text.find("usage: hearth image pull"), std::string::npos);
}

TEST(ImageNames, AreFoundByNameAndId) {
  const std::string id_a = "sha256:abcdef" + std::string(58, '0');
  const std::string id_b = "sha256:abc123" + std::string(58, '0');
  const std::vector<image::Image> images = {
      {.name = "docker.io/library/python:latest", .id = id_a},
      {.name = "docker.io/library/py:1", .id = id_a},
      {.name = "docker.io/library/abc123:latest", .id = id_b}};

  EXPECT_EQ(find_images(images, "python").size(), 1U);
  EXPECT_EQ(find_images(images, "abcdef").size(), 2U);
  EXPECT_EQ(find_images(images, id_a).size(), 2U);
  EXPECT_EQ(find_images(images, "abc123")[0].name, "docker.io/library/abc123:latest");
  EXPECT_TRUE(find_images(images, "abcde").empty());
  EXPECT_TRUE(find_images(images, "ruby").empty());
  EXPECT_EQ(full_image_name("host"), "host");
  EXPECT_THROW(full_image_name("Not A Name"), Error);
}

TEST(Debian, TheCommandHasNoRoomForTricks) {
  EXPECT_EQ(mmdebstrap_command(
                {.suite = "bookworm", .include = {"git", "g++"}, .mirror = "http://m/"}, true),
            (Words{"mmdebstrap", "--mode=root", "--variant=minbase", "--format=tar",
                   "--skip=output/dev", "--include=git,g++", "bookworm", "-", "http://m/"}));
  EXPECT_EQ(mmdebstrap_command({.suite = "sid"}, false)[1], "--mode=unshare");
  for (const DebianOptions& bad :
       {DebianOptions{.suite = "--setup-hook=sh"}, DebianOptions{.suite = "a b"},
        DebianOptions{.suite = "sid", .include = {"-x"}},
        DebianOptions{.suite = "sid", .include = {"a b"}},
        DebianOptions{.suite = "sid", .mirror = "deb [trusted=yes] http://x sid main"},
        DebianOptions{.suite = "sid", .mirror = "--hook"}}) {
    EXPECT_THROW(mmdebstrap_command(bad, true), Error);
  }
}

// What a progress writes for a layer that is downloaded and one that is here.
std::string written(ProgressKind kind) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = ::open_memstream(&text, &size);
  {
    const auto progress = make_progress(kind, out);
    using registry::Step;
    const std::string digest = "sha256:0123456789abcdef";
    progress->report({.digest = "sha256:fedcba9876543210", .step = Step::present});
    for (const std::uint64_t bytes : {0, 512, 1024}) {
      progress->report(
          {.digest = digest, .step = Step::downloading, .bytes = bytes, .total = 1024});
    }
    progress->note("trying again");
    progress->report({.digest = digest, .step = Step::unpacking, .total = 1024});
    progress->report({.digest = digest, .step = Step::done, .total = 1024});
  }
  std::fclose(out);
  std::string result(text, size);
  std::free(text);
  return result;
}

TEST(ImageProgress, LinesOncePerStep) {
  EXPECT_EQ(written(ProgressKind::lines),
            "fedcba987654: is here already\n"
            "0123456789ab: downloading (1 KiB)\n"
            "trying again\n"
            "0123456789ab: unpacking\n"
            "0123456789ab: done\n");
  EXPECT_EQ(written(ProgressKind::none), "");
}

TEST(ImageProgress, BarsLeaveOnlyWhatIsOver) {
  const std::string text = written(ProgressKind::bars);
  EXPECT_NE(text.find("0123456789ab: [          "), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\x1b[1A\x1b[J0123456789ab: done (1 KiB)\n")) << text;
}

}  // namespace
}  // namespace hearth::cli
