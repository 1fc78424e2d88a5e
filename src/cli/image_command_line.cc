// The words behind `hearth image`.
#include <algorithm>
#include <array>

#include "cli/image.h"
#include "cli/parser_internal.h"
#include "cli/values.h"

namespace hearth::cli {
namespace {

Order parse_pull(const CommandLine& line) {
  Parser parser(line);
  ImagePullOptions options;
  bool password_stdin = false;
  parser.options("--mirror", options.mirrors, "HOST",
                 "ask there first, as in mirror.example.com or http://10.0.0.1:5000");
  parser.option("-u,--user", options.user, "NAME", "who to be for the registry");
  parser.flag("--password-stdin", password_stdin, "read the password from standard input");
  parser.option("--docker-config", options.docker_config, "FILE",
                "where credentials are [~/.docker/config.json]");
  parser.option("--ca", options.ca_file, "FILE",
                "certificates (PEM) to trust [those of the system]");
  parser.flag("--plain-http", options.plain_http, "talk to the registry without encryption");
  parser.flag("-q,--quiet", options.quiet, "say nothing but the name");
  options.names = parser.parse();
  if (options.names.empty()) fail(Code::invalid, "which image? such as python:3.12");
  if (options.user.empty() == password_stdin) {
    fail(Code::invalid, "--user and --password-stdin go together");
  }
  options.state_dir = parser.state_dir();
  return ImageOrder(std::move(options));
}

Order parse_load(const CommandLine& line) {
  Parser parser(line);
  ImageLoadOptions options;
  parser.option("--name", options.name, "NAME", "what to call it [what the archive says]");
  parser.flag("-q,--quiet", options.quiet, "say nothing but the names");
  std::vector<std::string> words = parser.parse();
  if (!words.empty()) {
    options.path = words.front();
    words.erase(words.begin());
  }
  parser.refuse_words(words);
  options.state_dir = parser.state_dir();
  return ImageOrder(std::move(options));
}

std::vector<std::string> split_at_commas(const std::vector<std::string>& lists) {
  std::vector<std::string> all;
  for (const std::string& list : lists) {
    std::size_t begin = 0;
    while (begin <= list.size()) {
      const std::size_t comma = std::min(list.find(',', begin), list.size());
      if (comma > begin) all.push_back(list.substr(begin, comma - begin));
      begin = comma + 1;
    }
  }
  return all;
}

Order parse_import(const CommandLine& line) {
  Parser parser(line);
  ImageImportOptions options;
  std::vector<std::string> include;
  DebianOptions& debian = options.debian;
  parser.option("--name", options.name, "NAME", "what to call it [with --debian: debian:SUITE]");
  parser.option("--debian", debian.suite, "SUITE", "make it with mmdebstrap, such as bookworm");
  parser.options("--include", include, "PACKAGE,...", "with --debian: packages to be in it");
  parser.option("--mirror", debian.mirror, "URL", "with --debian: where from");
  parser.options("-e,--env", options.config.environment, "NAME=VALUE",
                 "environment of its commands; may be repeated");
  parser.option("-w,--workdir", options.config.directory, "DIR", "folder to start in");
  parser.option("-u,--user", options.config.user, "USER", "who its commands are");
  parser.flag("-q,--quiet", options.quiet, "say nothing but the name");
  std::vector<std::string> words = parser.parse_with_command(1);
  debian.include = split_at_commas(include);
  for (const std::string& entry : options.config.environment) check_environment("-e", entry);
  if (debian.suite.empty()) {
    if (words.empty()) fail(Code::invalid, "import what? a folder, a tar archive, or '-'");
    if (!debian.include.empty() || !debian.mirror.empty()) {
      fail(Code::invalid, "--include and --mirror go with --debian");
    }
    if (options.name.empty()) fail(Code::invalid, "what shall it be called? --name");
    options.path = words.front();
    words.erase(words.begin());
  } else if (options.name.empty()) {
    options.name = "debian:" + debian.suite;
  }
  options.config.command = std::move(words);
  options.state_dir = parser.state_dir();
  return ImageOrder(std::move(options));
}

Order parse_ls(const CommandLine& line) {
  Parser parser(line);
  bool quiet = false;
  parser.format(/*with_id=*/true);
  parser.flag("-q,--quiet", quiet, "names only; the same as -o id");
  parser.refuse_words(parser.parse());
  return ImageOrder(ImageLsOptions{.state_dir = parser.state_dir(),
                                   .format = quiet ? Format::id : parser.output()});
}

// For verbs that take names and nothing else.
template <typename Options>
Order parse_names(const CommandLine& line) {
  Parser parser(line);
  Options options;
  options.names = parser.parse();
  if (options.names.empty()) fail(Code::invalid, "which image? 'hearth image ls' lists them");
  options.state_dir = parser.state_dir();
  return ImageOrder(std::move(options));
}

struct Action {
  std::string_view name;
  Order (*parse)(const CommandLine&);
};
constexpr std::array<Action, 6> kActions = {{
    {"pull", parse_pull},
    {"load", parse_load},
    {"import", parse_import},
    {"ls", parse_ls},
    {"inspect", parse_names<ImageInspectOptions>},
    {"rm", parse_names<ImageRmOptions>},
}};

}  // namespace

Order parse_image(const CommandLine& line) {
  if (line.rest.empty() || line.rest[0] == "--help" || line.rest[0] == "-h") {
    return Help{.text = image_overview()};
  }
  const std::string& word = line.rest[0];
  const auto* const action = std::ranges::find(kActions, word, &Action::name);
  if (action == kActions.end()) {
    fail(Code::invalid, "there is no '{}'; 'hearth image --help' lists what there is", word);
  }
  return action->parse({.verb = fmt::format("image {}", action->name),
                        .state_dir = line.state_dir,
                        .rest = {line.rest.begin() + 1, line.rest.end()}});
}

}  // namespace hearth::cli
