// The words of the verbs in surface.h.
#include "cli/life_parser_internal.h"
#include "cli/surface.h"
#include "cli/values.h"

namespace hearth::cli {
namespace {

std::string take_id(std::vector<std::string>& words) {
  if (words.empty()) fail(Code::invalid, "which sandbox? 'hearth ls' lists them");
  std::string id = std::move(words.front());
  words.erase(words.begin());
  return id;
}

}  // namespace

Order parse_forward(const CommandLine& line) {
  Parser parser(line);
  std::vector<std::string> words = parser.parse();
  ForwardOptions options;
  options.id = take_id(words);
  if (words.empty()) fail(Code::invalid, "which port? such as 8080, or 3000:8080 for another here");
  for (const std::string& word : words) options.ports.push_back(parse_forwarded_port(word));
  options.state_dir = parser.state_dir();
  return options;
}

Order parse_ports(const CommandLine& line) {
  Parser parser(line);
  PortsOptions options;
  parser.flag("-f,--follow", options.follow, "a line whenever they have changed");
  parser.format();
  std::vector<std::string> words = parser.parse();
  options.id = take_id(words);
  parser.refuse_words(words);
  options.format = parser.output();
  options.state_dir = parser.state_dir();
  return options;
}

Order parse_configure(const CommandLine& line) {
  Parser parser(line);
  ConfigureOptions options;
  std::vector<std::string> secrets;
  parser.options("-e,--env", options.environment, "NAME=VALUE",
                 "environment variable of every command from now on; may be repeated");
  parser.option("-u,--user", options.user, "USER", "who commands run as");
  parser.option("-w,--workdir", options.directory, "DIR", "where commands start");
  parser.option("--hostname", options.hostname, "NAME", "what the sandbox calls itself");
  parser.options("--secret", secrets, "TARGET=FILE",
                 "a file that only its user may read, with what is in FILE, or in our input (-)");
  parser.option("--token-file", options.token_file, "FILE",
                "what surfaces ask for from now on is in there");
  std::vector<std::string> words = parser.parse();
  options.id = take_id(words);
  parser.refuse_words(words);
  for (const std::string& entry : options.environment) check_environment("-e", entry);
  for (const std::string& text : secrets) options.secrets.push_back(parse_secret("--secret", text));
  options.state_dir = parser.state_dir();
  return options;
}

}  // namespace hearth::cli
