// The words of the verbs in tenant_verbs.h.
#include "cli/cluster_parser_internal.h"
#include "cli/life_parser_internal.h"
#include "cli/tenant_verbs.h"
#include "cli/values.h"

namespace hearth::cli {
namespace {

constexpr std::uint32_t kMostSandboxes = 1'000'000;
constexpr std::uint32_t kMostRate = 100'000;

// The options that say what somebody may use.
class LimitsParser {
 public:
  explicit LimitsParser(Parser& parser) {
    parser.option("--sandboxes", sandboxes_, "N", "sandboxes at the same time; 0: none");
    parser.option("--rate", rate_, "N", "sandboxes that may be made in a second");
    parser.option("--lifetime", lifetime_, "TIME", "the longest that one may ask for, such as 1h");
    parser.option("--cpus", cpus_, "N", "processors of one sandbox, such as 2");
    parser.option("--memory", memory_, "SIZE", "memory of one sandbox, such as 2g");
  }

  tenants::LimitChanges finish() const {
    tenants::LimitChanges limits;
    if (!sandboxes_.empty())
      limits.sandboxes = parse_count("--sandboxes", sandboxes_, kMostSandboxes);
    if (!rate_.empty())
      limits.creates_per_second = above_zero("--rate", parse_count("--rate", rate_, kMostRate));
    if (!lifetime_.empty())
      limits.lifetime_seconds = above_zero(
          "--lifetime",
          std::chrono::ceil<std::chrono::seconds>(parse_timeout("--lifetime", lifetime_)).count());
    if (!cpus_.empty()) limits.cpu_millis = above_zero("--cpus", parse_cpus("--cpus", cpus_));
    if (!memory_.empty())
      limits.memory_mib =
          above_zero("--memory", static_cast<std::int64_t>(parse_size("--memory", memory_) >> 20U));
    return limits;
  }

 private:
  static std::int64_t above_zero(const char* flag, std::int64_t value) {
    if (value <= 0)
      fail(Code::invalid, "{}: so little allows nothing; take --sandboxes 0 for that", flag);
    return value;
  }

  std::string sandboxes_, rate_, lifetime_, cpus_, memory_;
};

Order parse_team_create(const CommandLine& line) {
  Parser parser(line);
  ClusterParser cluster(parser, /*has_namespace=*/false);
  LimitsParser limits(parser);
  TeamCreateOptions options;
  std::vector<std::string> words = parser.parse();
  options.name = take_word(words, "what shall the team be called?");
  parser.refuse_words(words);
  options.limits = limits.finish();
  options.cluster = cluster.finish();
  return TenantOrder(std::move(options));
}

Order parse_team_ls(const CommandLine& line) {
  Parser parser(line);
  ClusterParser cluster(parser, /*has_namespace=*/false);
  parser.format(/*with_id=*/true);
  parser.refuse_words(parser.parse());
  return TenantOrder(TeamLsOptions{.cluster = cluster.finish(), .format = parser.output()});
}

Order parse_team_limits(const CommandLine& line) {
  Parser parser(line);
  ClusterParser cluster(parser, /*has_namespace=*/false);
  LimitsParser limits(parser);
  TeamLimitsOptions options;
  parser.format();
  std::vector<std::string> words = parser.parse();
  options.name = take_word(words, "which team? 'hearth team ls' lists them");
  parser.refuse_words(words);
  options.limits = limits.finish();
  options.format = parser.output();
  options.cluster = cluster.finish();
  return TenantOrder(std::move(options));
}

// Words behind a verb that takes nothing else.
template <typename Options>
Order parse_some(const CommandLine& line, std::vector<std::string> Options::* member,
                 const char* question) {
  Parser parser(line);
  ClusterParser cluster(parser, /*has_namespace=*/false);
  Options options;
  std::vector<std::string> words = parser.parse();
  do {
    (options.*member).push_back(take_word(words, question));
  } while (!words.empty());
  options.cluster = cluster.finish();
  return TenantOrder(std::move(options));
}

Order parse_key_create(const CommandLine& line) {
  Parser parser(line);
  ClusterParser cluster(parser, /*has_namespace=*/false);
  LimitsParser limits(parser);
  KeyCreateOptions options{.team = std::string(tenants::kDefaultTeam), .name = "key"};
  std::string expires;
  parser.option("--team", options.team, "NAME", "whose key it is [default]");
  parser.option("--name", options.name, "NAME", "what people call it [key]");
  parser.option("--expires", expires, "TIME", "it ends after so long, such as 720h [never]");
  parser.refuse_words(parser.parse());
  if (!expires.empty()) options.lifetime = parse_timeout("--expires", expires);
  options.limits = limits.finish();
  options.cluster = cluster.finish();
  return TenantOrder(std::move(options));
}

Order parse_key_ls(const CommandLine& line) {
  Parser parser(line);
  ClusterParser cluster(parser, /*has_namespace=*/false);
  KeyLsOptions options;
  parser.option("--team", options.team, "NAME", "of one team [all]");
  parser.format(/*with_id=*/true);
  parser.refuse_words(parser.parse());
  options.format = parser.output();
  options.cluster = cluster.finish();
  return TenantOrder(std::move(options));
}

}  // namespace

Order parse_team(const CommandLine& line) {
  if (wants_overview(line)) return Help{.text = group_overview("team")};
  const std::string& action = line.rest.front();
  if (action == "create") return parse_team_create(behind_action(line));
  if (action == "ls") return parse_team_ls(behind_action(line));
  if (action == "limits") return parse_team_limits(behind_action(line));
  if (action == "rm")
    return parse_some(behind_action(line), &TeamRmOptions::names,
                      "which team? 'hearth team ls' lists them");
  fail_no_action(line);
}

Order parse_key(const CommandLine& line) {
  if (wants_overview(line)) return Help{.text = group_overview("key")};
  const std::string& action = line.rest.front();
  if (action == "create") return parse_key_create(behind_action(line));
  if (action == "ls") return parse_key_ls(behind_action(line));
  if (action == "rm")
    return parse_some(behind_action(line), &KeyRmOptions::ids,
                      "which key? 'hearth key ls' lists them by id");
  fail_no_action(line);
}

}  // namespace hearth::cli
