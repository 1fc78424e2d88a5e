// The words of the verbs in life.h.
#include "cli/life.h"
#include "cli/life_parser_internal.h"
#include "cli/values.h"

namespace hearth::cli {
namespace {

constexpr const char* kWhichSandbox = "which sandbox? 'hearth ls' lists them";
// What the runtime takes.
constexpr std::uint32_t kMostForks = 1000;
constexpr std::uint32_t kMostLogFiles = 100;
constexpr std::uint64_t kLeastLogSize = std::uint64_t{64} << 10;

std::string take_first(std::vector<std::string>& words, const char* otherwise) {
  if (words.empty()) fail(Code::invalid, "{}", otherwise);
  std::string first = std::move(words.front());
  words.erase(words.begin());
  return first;
}

// For verbs that take ids and nothing else.
template <typename Options>
Order parse_ids(const CommandLine& line) {
  Parser parser(line);
  Options options;
  options.ids = parser.parse();
  if (options.ids.empty()) fail(Code::invalid, "{}", kWhichSandbox);
  options.state_dir = parser.state_dir();
  return options;
}

}  // namespace

runtime::LogLimits LogParser::finish() const {
  runtime::LogLimits log;
  if (!size_.empty()) log.bytes = parse_size("--log-size", size_);
  if (!files_.empty()) log.files = parse_count("--log-files", files_, kMostLogFiles);
  if (log.bytes < kLeastLogSize)
    fail(Code::invalid, "--log-size: '{}' is too small; the least is 64k", size_);
  return log;
}

Order parse_logs(const CommandLine& line) {
  Parser parser(line);
  LogsOptions options;
  std::string tail, since;
  parser.flag("-f,--follow", options.follow, "go on until the sandbox ends");
  parser.option("-n,--tail", tail, "N", "only the last lines, or all [all]");
  parser.option("--since", since, "TIME",
                "only lines since then: 10m ago, or 2026-01-02T03:04:05Z");
  parser.flag("-t,--timestamps", options.choice.timestamps, "say when each line was begun");
  std::vector<std::string> words = parser.parse();
  options.id = take_first(words, kWhichSandbox);
  parser.refuse_words(words);
  if (!tail.empty() && tail != "all") options.choice.tail = parse_count("--tail", tail, UINT32_MAX);
  if (!since.empty()) options.choice.since = parse_moment("--since", since);
  options.state_dir = parser.state_dir();
  return options;
}

Order parse_attach(const CommandLine& line) {
  Parser parser(line);
  AttachOptions options;
  std::string forward = "true", pid;
  parser.flag("--no-stdin", options.no_stdin, "only look on");
  parser.option("--sig-proxy", forward, "BOOL", "pass signals on to the command [true]");
  parser.option("--pid", pid, "PID", "to which one, as seen inside [the first detached one]");
  std::vector<std::string> words = parser.parse();
  options.id = take_first(words, kWhichSandbox);
  parser.refuse_words(words);
  if (forward != "true" && forward != "false")
    fail(Code::invalid, "--sig-proxy: '{}' is neither true nor false", forward);
  options.forward_signals = forward == "true";
  if (!pid.empty()) options.pid = parse_count("--pid", pid, INT32_MAX);
  options.state_dir = parser.state_dir();
  return options;
}

Order parse_pause(const CommandLine& line) {
  return parse_ids<PauseOptions>(line);
}

Order parse_resume(const CommandLine& line) {
  return parse_ids<ResumeOptions>(line);
}

Order parse_stop(const CommandLine& line) {
  Parser parser(line);
  std::string grace;
  parser.option("-t,--time", grace, "TIME",
                "kill what is left after so long [10s]; 0 kills at once");
  StopOptions options;
  options.ids = parser.parse();
  if (options.ids.empty()) fail(Code::invalid, "{}", kWhichSandbox);
  if (grace == "0" || grace == "0s")
    options.grace = {};
  else if (!grace.empty())
    options.grace = parse_timeout("-t", grace);
  options.state_dir = parser.state_dir();
  return options;
}

Order parse_commit(const CommandLine& line) {
  Parser parser(line);
  std::vector<std::string> words = parser.parse();
  CommitOptions options;
  options.id = take_first(words, kWhichSandbox);
  options.name = take_first(words, "what shall the image be called? such as mine:1");
  parser.refuse_words(words);
  options.state_dir = parser.state_dir();
  return options;
}

Order parse_fork(const CommandLine& line) {
  Parser parser(line);
  std::string count = "1";
  parser.option("-n,--count", count, "N", "how many [1]");
  std::vector<std::string> words = parser.parse();
  ForkOptions options;
  options.id = take_first(words, kWhichSandbox);
  parser.refuse_words(words);
  options.count = parse_count("-n", count, kMostForks);
  if (options.count == 0) fail(Code::invalid, "-n: 0 forks are none");
  options.state_dir = parser.state_dir();
  return options;
}

Order parse_policy(const CommandLine& line) {
  Parser parser(line);
  NetworkParser network(parser, "--mode", "none, world, or listed: what --allow names");
  std::vector<std::string> words = parser.parse();
  PolicyOptions options;
  options.id = take_first(words, kWhichSandbox);
  parser.refuse_words(words);
  const NetworkOptions wanted = network.finish();
  // Nothing of the rules before stays: what is not said here would be a guess.
  if (!wanted.mode) fail(Code::invalid, "whom may it talk to? --mode none, world or listed");
  options.policy = wanted.rules;
  options.policy.mode = *wanted.mode;
  options.state_dir = parser.state_dir();
  return options;
}

Order parse_stats(const CommandLine& line) {
  Parser parser(line);
  parser.format();
  StatsOptions options{.ids = parser.parse()};
  options.format = parser.output();
  options.state_dir = parser.state_dir();
  return options;
}

Order parse_volumes(const CommandLine& line) {
  Parser parser(line);
  std::string size;
  parser.option("--size", size, "SIZE", "with create: what it can hold [as much as the disk]");
  parser.format(/*with_id=*/true);
  std::vector<std::string> words = parser.parse();
  const std::string action =
      take_first(words, "what about volumes? create NAME, ls, or rm NAME...");
  if (!size.empty() && action != "create")
    fail(Code::invalid, "--size goes with create: a volume keeps the size it was made with");
  if (action == "create") {
    VolumeCreateOptions options{.state_dir = parser.state_dir()};
    options.name = take_first(words, "what shall the volume be called?");
    parser.refuse_words(words);
    if (!size.empty()) options.bytes = parse_size("--size", size);
    return options;
  }
  if (action == "ls") {
    parser.refuse_words(words);
    return VolumeLsOptions{.state_dir = parser.state_dir(), .format = parser.output()};
  }
  if (action != "rm")
    fail(Code::invalid, "there is no '{}'; 'hearth volume --help' lists what there is", action);
  if (words.empty()) fail(Code::invalid, "which volume? 'hearth volume ls' lists them");
  return VolumeRmOptions{.state_dir = parser.state_dir(), .names = std::move(words)};
}

}  // namespace hearth::cli
