#include "cli/command_line.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "cli/help.h"
#include "cli/life_parser_internal.h"
#include "cli/values.h"

namespace hearth::cli {
namespace {

// The options that run and exec share, and what becomes of them.
class CommandParser {
 public:
  explicit CommandParser(Parser& parser) {
    parser.flag("-i,--interactive", options_.interactive,
                "pass our input on, or with -d keep it open for 'hearth attach'");
    parser.flag("-t,--tty", options_.terminal, "give the command a terminal");
    parser.flag("-d,--detach", options_.detached, "do not wait; output is kept for 'hearth logs'");
    parser.options("-e,--env", options_.environment, "NAME=VALUE",
                   "environment variable; may be repeated");
    parser.option("-w,--workdir", options_.directory, "DIR",
                  "folder to start in [the image's, or the user's home]");
    parser.option("-u,--user", options_.user, "USER",
                  "name, uid or uid:gid inside [the image's, or root]");
    parser.option("--timeout", timeout_, "TIME", "kill it after so long, such as 30s");
  }

  CommandOptions finish(std::vector<std::string> command) {
    options_.command = std::move(command);
    for (const std::string& entry : options_.environment) check_environment("-e", entry);
    if (!timeout_.empty()) options_.timeout = parse_timeout("--timeout", timeout_);
    return std::move(options_);
  }

 private:
  CommandOptions options_;
  std::string timeout_;
};

// What run says about mounts.
class MountParser {
 public:
  explicit MountParser(Parser& parser) {
    parser.options("-v,--volume", volumes_, "SOURCE:TARGET[:ro]",
                   "mount a volume by its name, or a path of this machine; may be repeated");
    parser.options("--tmpfs", tmpfs_, "TARGET[:SIZE]", "a folder in memory [64m]");
    parser.options("--secret", secrets_, "TARGET=FILE",
                   "a read-only file with what is in FILE, or in our input (-)");
  }

  void finish(RunOptions& options) const {
    for (const std::string& text : volumes_) options.mounts.push_back(parse_volume("-v", text));
    for (const std::string& text : tmpfs_) options.mounts.push_back(parse_tmpfs("--tmpfs", text));
    for (const std::string& text : secrets_)
      options.secrets.push_back(parse_secret("--secret", text));
    const auto from_input = std::ranges::count(options.secrets, "-", &SecretFile::path);
    if (from_input > 1 || (from_input == 1 && options.command.interactive))
      fail(Code::invalid, "--secret: our input can be read once, and goes without -i");
  }

 private:
  std::vector<std::string> volumes_, tmpfs_, secrets_;
};

// What run says about limits.
class LimitParser {
 public:
  explicit LimitParser(Parser& parser) {
    parser.option("--memory", memory_, "SIZE", "limit of everything in it together [1g]");
    parser.option("--cpus", cpus_, "N", "processors, such as 1.5 [2]");
    parser.option("--pids", pids_, "N", "processes and threads [512]");
    parser.option("--disk", disk_, "SIZE", "what may be written to files [1g]");
    parser.option("--disk-on", disk_on_, "PLACE", "where those are: memory or disk [memory]");
    parser.option("--io-read", read_, "SIZE", "what may be read from the disk in a second");
    parser.option("--io-write", write_, "SIZE", "what may be written to it in a second");
    parser.option("--io-read-ops", read_ops_, "N", "how often it may be read in a second");
    parser.option("--io-write-ops", write_ops_, "N", "how often it may be written in a second");
    parser.options("--ulimit", ulimits_, "NAME=SOFT[:HARD]",
                   "limit of each process, such as nofile=1024:4096; may be repeated");
  }

  void finish(RunOptions& options) const {
    runtime::Limits& limits = options.limits;
    if (!memory_.empty()) limits.memory_bytes = parse_size("--memory", memory_);
    if (!cpus_.empty()) limits.cpu_millis = parse_cpus("--cpus", cpus_);
    if (!pids_.empty()) limits.pids = parse_count("--pids", pids_, 1u << 22);
    if (!disk_.empty()) limits.disk_bytes = parse_size("--disk", disk_);
    if (!disk_on_.empty()) options.disk_on = parse_disk_place("--disk-on", disk_on_);
    if (!read_.empty()) limits.io.read_bytes = parse_size("--io-read", read_);
    if (!write_.empty()) limits.io.write_bytes = parse_size("--io-write", write_);
    if (!read_ops_.empty()) limits.io.read_ops = parse_count("--io-read-ops", read_ops_, kMostOps);
    if (!write_ops_.empty())
      limits.io.write_ops = parse_count("--io-write-ops", write_ops_, kMostOps);
    for (const std::string& text : ulimits_)
      options.ulimits.push_back(parse_ulimit("--ulimit", text));
  }

 private:
  // What the kernel takes.
  static constexpr std::uint32_t kMostOps = std::numeric_limits<std::uint32_t>::max() - 1;

  std::string memory_, cpus_, pids_, disk_, disk_on_, read_, write_, read_ops_, write_ops_;
  std::vector<std::string> ulimits_;
};

void check_run(const RunOptions& options) {
  const CommandOptions& how = options.command;
  if (!options.name.empty() && !is_label(options.name)) {
    fail(Code::invalid, "--name: '{}' is no id: 1 to 63 of a-z, 0-9 and '-', no '-' at either end",
         options.name);
  }
  if (options.remove && how.detached) {
    fail(Code::invalid, "--rm goes without -d: remove it with 'hearth rm' when you are done");
  }
  // Other images may know a command.
  if (options.image == "host" && how.command.empty() && !how.detached &&
      !(how.interactive && how.terminal)) {
    fail(Code::invalid,
         "no command; add one behind '--', or take -it for a shell or -d for a sandbox to use "
         "later");
  }
}

void parse_restart(const std::string& text, CommandOptions& options) {
  const std::size_t colon = text.find(':');
  const std::string when = text.substr(0, colon);
  if (when == "always" && colon == std::string::npos) {
    options.restart = guest::Restart::always;
  } else if (when == "on-failure") {
    options.restart = guest::Restart::on_failure;
    if (colon != std::string::npos)
      options.most_restarts = parse_count("--restart", text.substr(colon + 1), 1u << 20);
  } else if (text != "never") {
    fail(Code::invalid, "--restart: '{}' is none of never, on-failure, on-failure:N and always",
         text);
  }
  if (options.restart != guest::Restart::never && !options.detached)
    fail(Code::invalid, "--restart goes with -d: while you watch, you decide");
}

Order parse_run(const CommandLine& line) {
  Parser parser(line);
  CommandParser command(parser);
  RunOptions options;
  parser.option("--image", options.image, "IMAGE",
                "what it is made of [host: this machine's /usr]");
  parser.option("--name", options.name, "ID", "its id [made up]");
  parser.flag("--rm", options.remove, "remove the sandbox when the command has ended");
  std::string restart;
  parser.option("--restart", restart, "WHEN",
                "with -d: start the command again: never, on-failure[:N] or always [never]");
  LogParser log(parser);
  LimitParser limits(parser);
  NetworkParser network(parser, "--network", "none, world, or listed: what --allow names [world]");
  MountParser mounts(parser);
  std::vector<std::string> serve;
  parser.options("--serve", serve, "SURFACE[:PORT]",
                 "what listens inside: envd, code, runtime-api, sandboxd, or all");
  parser.option("--token-file", options.token_file, "FILE", "what surfaces ask for is in there");
  options.command = command.finish(parser.parse_with_command(0));
  options.state_dir = parser.state_dir();
  options.log = log.finish();
  limits.finish(options);
  options.network = network.finish();
  mounts.finish(options);
  options.surfaces = parse_surfaces("--serve", serve);
  if (!options.token_file.empty() && options.surfaces.empty())
    fail(Code::invalid, "--token-file goes with --serve: nobody else would ask for it");
  if (!restart.empty()) parse_restart(restart, options.command);
  check_run(options);
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
      {"attach", parse_attach},
      {"env", parse_env},
      {"version", parse_format_only<VersionOptions>},
      {"doctor", parse_format_only<DoctorOptions>},
      {"image", parse_image},
      {"pause", parse_pause},
      {"stop", parse_stop},
      {"resume", parse_resume},
      {"commit", parse_commit},
      {"fork", parse_fork},
      {"network", parse_policy},
      {"stats", parse_stats},
      {"forward", parse_forward},
      {"ports", parse_ports},
      {"configure", parse_configure},
      {"volume", parse_volumes},
      {"apiserver", parse_apiserver},
      {"get", parse_get},
      {"describe", parse_describe},
      {"claim", parse_claim},
      {"pool", parse_pool},
      {"template", parse_template},
      {"team", parse_team},
      {"key", parse_key},
      {"kubectl", parse_kubectl},
      {"backup", parse_backup},
      {"restore", parse_restore},
      {"controller", parse_controller},
      {"crds", parse_crds},
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
