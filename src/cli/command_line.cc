// The only file that sees CLI11: it costs seconds to compile.
//
// Each verb is a parser of its own, not a CLI11 subcommand: those would take words of the sandboxed
// command (`hearth run env`) for verbs.
#include "cli/command_line.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "cli/help.h"
#include "cli/state_dir.h"
#include "cli/values.h"

namespace hearth::cli {
namespace {

// Thrown by parse() when --help was asked for; caught in parse_order().
struct HelpWanted {
  std::string text;
};

class HelpFormat final : public CLI::Formatter {
 public:
  explicit HelpFormat(const VerbHelp& verb) : verb_(verb) { column_width(26); }

  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return fmt::format("\nusage: hearth {} {}\n", verb_.name, verb_.usage);
  }

 private:
  const VerbHelp& verb_;
};

// One verb's options. Values stay text here: our own errors say more than the library's.
class Parser {
 public:
  explicit Parser(const CommandLine& line) : verb_(*find_verb_help(line.verb)), words_(line.rest) {
    state_dir_ = line.state_dir;
    app_.description(std::string(verb_.summary));
    app_.footer(std::string(verb_.footer));
    app_.formatter(std::make_shared<HelpFormat>(verb_));
    app_.set_help_flag("-h,--help", "print this");
    app_.add_option("--state-dir", state_dir_, "where the engine keeps its things")
        ->type_name("DIR");
  }

  void flag(const std::string& names, bool& value, const std::string& text) {
    app_.add_flag(names, value, text);
  }
  void option(const std::string& names, std::string& value, const std::string& type,
              const std::string& text) {
    app_.add_option(names, value, text)->type_name(type);
  }
  void options(const std::string& names, std::vector<std::string>& values, const std::string& type,
               const std::string& text) {
    app_.add_option(names, values, text)->type_name(type)->allow_extra_args(false);
  }
  void format(bool with_id = false) {
    option("-o,--output", format_, "FORMAT", with_id ? "table, json or id" : "table or json");
    with_id_ = with_id;
  }

  // Words that are neither options nor their values.
  std::vector<std::string> parse() {
    std::vector<std::string> words = words_;
    const auto dashes = std::ranges::find(words, "--");
    const std::vector<std::string> after(dashes == words.end() ? dashes : dashes + 1, words.end());
    words.erase(dashes, words.end());
    std::vector<std::string> positional = parse_words(std::move(words));
    positional.insert(positional.end(), after.begin(), after.end());
    return positional;
  }

  // The first `own` words are the verb's; what follows them, or "--", is a command with options of
  // its own.
  std::vector<std::string> parse_with_command(std::size_t own) {
    const auto end = find_command(own);
    std::vector<std::string> command(end, words_.cend());
    std::vector<std::string> mine(words_.cbegin(), end);
    if (!command.empty() && command.front() == "--") command.erase(command.begin());
    std::vector<std::string> positional = parse_words(std::move(mine));
    positional.insert(positional.end(), command.begin(), command.end());
    return positional;
  }

  std::string state_dir() const { return find_state_dir(state_dir_); }
  Format output() const {
    if (format_ == "table" || format_.empty()) return Format::table;
    if (format_ == "json") return Format::json;
    if (format_ == "id" && with_id_) return Format::id;
    fail(Code::invalid, "-o: there is no output '{}'; there are table{} json", format_,
         with_id_ ? ", id and" : " and");
  }
  void refuse_words(const std::vector<std::string>& words) const {
    if (!words.empty())
      fail(Code::invalid, "'{}' is one word too many; see 'hearth {} --help'", words.front(),
           verb_.name);
  }

 private:
  std::vector<std::string> parse_words(std::vector<std::string> words) {
    app_.allow_extras();
    std::ranges::reverse(words);  // as the library wants it
    try {
      app_.parse(std::move(words));
    } catch (const CLI::CallForHelp&) {
      throw HelpWanted{app_.help()};
    } catch (const CLI::ParseError& error) {
      fail(Code::invalid, "{}; see 'hearth {} --help'", error.what(), verb_.name);
    }
    std::vector<std::string> extras = app_.remaining();
    const auto unknown = std::ranges::find_if(
        extras, [](const std::string& word) { return word.starts_with('-') && word.size() > 1; });
    if (unknown != extras.end()) {
      fail(Code::invalid, "there is no option '{}'; see 'hearth {} --help'", *unknown, verb_.name);
    }
    return extras;
  }

  // Where the command begins: behind "--", or behind `own` words that are no options.
  std::vector<std::string>::const_iterator find_command(std::size_t own) const {
    std::size_t seen = 0;
    for (auto word = words_.begin(); word != words_.end(); ++word) {
      if (*word == "--") return word;
      if (!word->starts_with('-') || word->size() == 1) {
        if (seen++ == own) return word;
      } else if (takes_next_word(*word) && std::next(word) != words_.end()) {
        ++word;
      }
    }
    return words_.end();
  }

  // "--memory" and "-e" do, "--memory=1g" and "-eA=b" and "-it" do not; the last of "-ite" does.
  bool takes_next_word(const std::string& word) const {
    const auto takes_value = [&](const std::string& name) {
      const CLI::Option* option = app_.get_option_no_throw(name);
      return option != nullptr && option->get_expected_min() > 0;
    };
    if (word.starts_with("--")) return takes_value(word);
    for (std::size_t i = 1; i < word.size(); ++i) {
      if (takes_value(std::string("-") + word[i])) return i + 1 == word.size();
    }
    return false;
  }

  const VerbHelp& verb_;
  std::vector<std::string> words_;
  std::string state_dir_;
  std::string format_;
  bool with_id_ = false;
  CLI::App app_;
};

std::uint16_t parse_port(const char* flag, const std::string& text) {
  return static_cast<std::uint16_t>(
      parse_count(flag, text, std::numeric_limits<std::uint16_t>::max()));
}

Order parse_up(const CommandLine& line) {
  Parser parser(line);
  UpOptions options;
  std::string kube = std::to_string(options.kube_port), api = std::to_string(options.api_port);
  std::string e2b = std::to_string(options.e2b_port),
              metrics = std::to_string(options.metrics_port);
  parser.option("--listen", options.listen, "ADDR", "address to listen on [127.0.0.1]");
  parser.option("--kube-port", kube, "N", "Kubernetes API [6443]; 0: any free port");
  parser.option("--api-port", api, "N", "sandbox API [8080]");
  parser.option("--e2b-port", e2b, "N", "E2B API [8090]");
  parser.option("--metrics-port", metrics, "N", "metrics and health [8082]");
  parser.option("--log-format", options.log_format, "FORMAT", "text or json [text]");
  parser.option("--log-level", options.log_level, "LEVEL", "debug, info, warning or error [info]");
  parser.option(
      "--user", options.user, "NAME|UID",
      "who the engine is once it needs root no more [who called sudo; 'hearth'; nobody's uid]");
  parser.flag("--demo", options.demo, "make a first sandbox and show what it does");
  parser.refuse_words(parser.parse());
  options.state_dir = parser.state_dir();
  options.kube_port = parse_port("--kube-port", kube);
  options.api_port = parse_port("--api-port", api);
  options.e2b_port = parse_port("--e2b-port", e2b);
  options.metrics_port = parse_port("--metrics-port", metrics);
  log::parse_format(options.log_format);
  log::parse_level(options.log_level);
  return options;
}

// The options that run and exec share, and what becomes of them.
class CommandParser {
 public:
  explicit CommandParser(Parser& parser) {
    parser.flag("-i,--interactive", options_.interactive,
                "pass our input on; without it the command reads nothing");
    parser.flag("-t,--tty", options_.terminal, "give the command a terminal");
    parser.flag("-d,--detach", options_.detached, "do not wait; output is kept for 'hearth logs'");
    parser.options("-e,--env", options_.environment, "NAME=VALUE",
                   "environment variable; may be repeated");
    parser.option("-w,--workdir", options_.directory, "DIR",
                  "folder to start in [the user's home]");
    parser.option("-u,--user", options_.user, "USER", "name, uid or uid:gid inside [root]");
    parser.option("--timeout", timeout_, "TIME", "kill it after so long, such as 30s");
  }

  CommandOptions finish(std::vector<std::string> command) {
    options_.command = std::move(command);
    for (const std::string& entry : options_.environment) check_environment("-e", entry);
    if (!timeout_.empty()) options_.timeout = parse_timeout("--timeout", timeout_);
    if (options_.detached && (options_.interactive || options_.terminal)) {
      fail(Code::invalid, "-d goes without -i and -t: nobody is there to type");
    }
    return std::move(options_);
  }

 private:
  CommandOptions options_;
  std::string timeout_;
};

Order parse_run(const CommandLine& line) {
  Parser parser(line);
  CommandParser command(parser);
  RunOptions options;
  std::string memory, cpus, pids, disk;
  parser.option("--image", options.image, "IMAGE",
                "what it is made of [host: this machine's /usr]");
  parser.option("--name", options.name, "ID", "its id [made up]");
  parser.flag("--rm", options.remove, "remove the sandbox when the command has ended");
  parser.option("--memory", memory, "SIZE", "limit of everything in it together [1g]");
  parser.option("--cpus", cpus, "N", "processors, such as 1.5 [2]");
  parser.option("--pids", pids, "N", "processes and threads [512]");
  parser.option("--disk", disk, "SIZE", "what may be written to files [1g]");
  options.command = command.finish(parser.parse_with_command(0));
  options.state_dir = parser.state_dir();
  if (!memory.empty()) options.limits.memory_bytes = parse_size("--memory", memory);
  if (!cpus.empty()) options.limits.cpu_millis = parse_cpus("--cpus", cpus);
  if (!pids.empty()) options.limits.pids = parse_count("--pids", pids, 1u << 22);
  if (!disk.empty()) options.limits.disk_bytes = parse_size("--disk", disk);
  if (!options.name.empty() && !is_label(options.name)) {
    fail(Code::invalid, "--name: '{}' is no id: 1 to 63 of a-z, 0-9 and '-', no '-' at either end",
         options.name);
  }
  if (options.remove && options.command.detached) {
    fail(Code::invalid, "--rm goes without -d: remove it with 'hearth rm' when you are done");
  }
  const CommandOptions& how = options.command;
  if (how.command.empty() && !how.detached && !(how.interactive && how.terminal)) {
    fail(Code::invalid,
         "no command; add one behind '--', or take -it for a shell or -d for a sandbox to use "
         "later");
  }
  return options;
}

Order parse_exec(const CommandLine& line) {
  Parser parser(line);
  CommandParser command(parser);
  ExecOptions options;
  std::vector<std::string> words = parser.parse_with_command(1);
  if (words.empty()) fail(Code::invalid, "which sandbox? 'hearth ls' lists them");
  options.id = words.front();
  words.erase(words.begin());
  options.command = command.finish(std::move(words));
  options.state_dir = parser.state_dir();
  if (options.command.command.empty() &&
      !(options.command.interactive && options.command.terminal)) {
    fail(Code::invalid, "no command; add one behind '--', or take -it for a shell");
  }
  return options;
}

Order parse_ls(const CommandLine& line) {
  Parser parser(line);
  parser.format(/*with_id=*/true);
  parser.refuse_words(parser.parse());
  return LsOptions{.state_dir = parser.state_dir(), .format = parser.output()};
}

Order parse_inspect(const CommandLine& line) {
  Parser parser(line);
  InspectOptions options{.ids = parser.parse()};
  if (options.ids.empty()) fail(Code::invalid, "which sandbox? 'hearth ls' lists them");
  options.state_dir = parser.state_dir();
  return options;
}

Order parse_rm(const CommandLine& line) {
  Parser parser(line);
  RmOptions options;
  parser.flag("-a,--all", options.all, "all sandboxes of this engine");
  options.ids = parser.parse();
  if (options.ids.empty() && !options.all)
    fail(Code::invalid, "which sandbox? name ids, or take --all");
  if (!options.ids.empty() && options.all) fail(Code::invalid, "ids and --all exclude each other");
  options.state_dir = parser.state_dir();
  return options;
}

Order parse_logs(const CommandLine& line) {
  Parser parser(line);
  LogsOptions options;
  parser.flag("-f,--follow", options.follow, "go on until the sandbox ends");
  std::vector<std::string> words = parser.parse();
  if (words.empty()) fail(Code::invalid, "which sandbox? 'hearth ls' lists them");
  options.id = words.front();
  words.erase(words.begin());
  parser.refuse_words(words);
  options.state_dir = parser.state_dir();
  return options;
}

Order parse_env(const CommandLine& line) {
  Parser parser(line);
  parser.refuse_words(parser.parse());
  return EnvOptions{.state_dir = parser.state_dir()};
}

// For verbs that take --output and nothing else.
template <typename Options>
Order parse_format_only(const CommandLine& line) {
  Parser parser(line);
  parser.format();
  parser.refuse_words(parser.parse());
  return Options{.state_dir = parser.state_dir(), .format = parser.output()};
}

}  // namespace

CommandLine split_command_line(std::vector<std::string> words) {
  CommandLine line;
  auto word = words.begin();
  for (; word != words.end() && word->starts_with('-'); ++word) {
    if (*word == "-h" || *word == "--help") return {};
    if (*word == "--version") {
      line.verb = "version";
      return line;
    }
    if (word->starts_with("--state-dir=")) {
      line.state_dir = word->substr(word->find('=') + 1);
    } else if (*word == "--state-dir" && std::next(word) != words.end()) {
      line.state_dir = *++word;
    } else {
      fail(Code::invalid, "there is no option '{}' before a verb; see 'hearth --help'", *word);
    }
  }
  if (word == words.end()) return line;
  // "help run" is "run --help".
  const bool help = *word == "help";
  if (help && ++word == words.end()) return {};
  const VerbHelp* verb = find_verb_help(*word);
  if (verb == nullptr) throw Error(Code::invalid, describe_unknown_verb(*word));
  line.verb = verb->name;
  if (help)
    line.rest = {"--help"};
  else
    line.rest.assign(std::next(word), words.end());
  return line;
}

Order parse_order(const CommandLine& line) {
  static const std::map<std::string, Order (*)(const CommandLine&), std::less<>> kParsers = {
      {"up", parse_up},
      {"run", parse_run},
      {"exec", parse_exec},
      {"ls", parse_ls},
      {"inspect", parse_inspect},
      {"rm", parse_rm},
      {"logs", parse_logs},
      {"env", parse_env},
      {"version", parse_format_only<VersionOptions>},
      {"doctor", parse_format_only<DoctorOptions>},
  };
  const auto parser = kParsers.find(line.verb);
  if (parser == kParsers.end()) return Help{.text = overview()};
  try {
    return parser->second(line);
  } catch (const HelpWanted& help) {
    return Help{.text = help.text};
  }
}

}  // namespace hearth::cli
