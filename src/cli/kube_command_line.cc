// The words of the verbs in kube.h.
#include <algorithm>
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

// What fits into the Authorization header that it comes back in (RFC 6750, 2.1).
void check_token(const std::string& token) {
  constexpr std::string_view kOthers = "-._~+/=";
  const auto fits = [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kOthers.find(c) != std::string_view::npos;
  };
  if (token.empty() || !std::ranges::all_of(token, fits))
    fail(Code::invalid, "--token: letters, digits and any of {}, and at least one", kOthers);
}

}  // namespace

Order parse_apiserver(const CommandLine& line) {
  Parser parser(line);
  ApiServerOptions options;
  std::vector<std::string> tokens;
  std::string port = std::to_string(options.kube_port);
  parser.option("--listen", options.listen, "ADDR", "address to listen on [127.0.0.1]");
  parser.option("--kube-port", port, "N", "port [6443]; 0: any free one");
  parser.options("--token", tokens, "TOKEN",
                 "the admin's, for tests: whoever lists processes sees it [a kept, random one]");
  parser.option("--log-format", options.log_format, "FORMAT", "text or json [text]");
  parser.option("--log-level", options.log_level, "LEVEL", "debug, info, warning or error [info]");
  parser.refuse_words(parser.parse());
  for (const std::string& token : tokens) check_token(token);
  if (!tokens.empty()) options.token = tokens.back();
  options.state_dir = parser.state_dir();
  options.kube_port = static_cast<std::uint16_t>(
      parse_count("--kube-port", port, std::numeric_limits<std::uint16_t>::max()));
  log::parse_format(options.log_format);
  log::parse_level(options.log_level);
  return options;
}

// Everything behind the verb is kubectl's, but for a lone --help: kubectl's own is 'kubectl help'.
Order parse_kubectl(const CommandLine& line) {
  if (line.rest == std::vector<std::string>{"--help"}) Parser(line).parse();
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
