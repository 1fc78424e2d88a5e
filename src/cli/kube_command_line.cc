// The words of the verbs in kube.h.
#include <limits>

#include "base/log.h"
#include "cli/kube.h"
#include "cli/life_parser_internal.h"
#include "cli/values.h"

namespace hearth::cli {
namespace {

std::string take_file(const Parser& parser, std::vector<std::string> words, const char* what) {
  if (words.empty()) fail(Code::invalid, "{}", what);
  const std::string file = words.front();
  words.erase(words.begin());
  parser.refuse_words(words);
  return file;
}

}  // namespace

Order parse_apiserver(const CommandLine& line) {
  Parser parser(line);
  ApiServerOptions options;
  std::string port = std::to_string(options.kube_port);
  parser.option("--listen", options.listen, "ADDR", "address to listen on [127.0.0.1]");
  parser.option("--kube-port", port, "N", "port [6443]; 0: any free one");
  parser.option("--token", options.token, "TOKEN",
                "the admin's, for tests: whoever lists processes sees it [a kept, random one]");
  parser.option("--log-format", options.log_format, "FORMAT", "text or json [text]");
  parser.option("--log-level", options.log_level, "LEVEL", "debug, info, warning or error [info]");
  parser.refuse_words(parser.parse());
  options.state_dir = parser.state_dir();
  options.kube_port = static_cast<std::uint16_t>(
      parse_count("--kube-port", port, std::numeric_limits<std::uint16_t>::max()));
  log::parse_format(options.log_format);
  log::parse_level(options.log_level);
  return options;
}

// Everything behind the verb is kubectl's, --help too.
Order parse_kubectl(const CommandLine& line) {
  return KubectlOptions{.state_dir = find_state_dir(line.state_dir), .words = line.rest};
}

Order parse_backup(const CommandLine& line) {
  Parser parser(line);
  BackupOptions options;
  options.file = take_file(parser, parser.parse(), "where to? 'hearth backup FILE'");
  options.state_dir = parser.state_dir();
  return options;
}

Order parse_restore(const CommandLine& line) {
  Parser parser(line);
  RestoreOptions options;
  parser.flag("--replace", options.replace, "put what is there aside, as *.before-restore");
  options.file = take_file(parser, parser.parse(), "from which file? 'hearth restore FILE'");
  options.state_dir = parser.state_dir();
  return options;
}

}  // namespace hearth::cli
