// The words of the verbs in kube_verbs.h.
#include <algorithm>
#include <array>
#include <limits>

#include "cli/cluster_parser_internal.h"
#include "cli/kube_verbs.h"
#include "cli/life_parser_internal.h"
#include "cli/values.h"
#include "model/quantity.h"

namespace hearth::cli {
namespace {

constexpr std::uint32_t kMostReplicas = 100'000;

struct FormatName {
  std::string_view name;
  ObjectFormat format;
};
constexpr std::array<FormatName, 5> kFormats = {{{"table", ObjectFormat::table},
                                                 {"wide", ObjectFormat::wide},
                                                 {"json", ObjectFormat::json},
                                                 {"yaml", ObjectFormat::yaml},
                                                 {"name", ObjectFormat::name}}};

ObjectFormat parse_format(const std::string& text, bool has_yaml = true) {
  const auto* const found = std::ranges::find(kFormats, text, &FormatName::name);
  if (found == kFormats.end() || (!has_yaml && found->format == ObjectFormat::yaml))
    fail(Code::invalid, "-o: there is no output '{}'; there are table, wide, json{} and name", text,
         has_yaml ? ", yaml" : "");
  return found->format;
}

// "pod/web" is "pod web".
void split_at_slash(std::vector<std::string>& words) {
  if (words.empty()) return;
  const std::size_t slash = words.front().find('/');
  if (slash == std::string::npos) return;
  words.insert(words.begin() + 1, words.front().substr(slash + 1));
  words.front().resize(slash);
}

// `kind` is empty for `hearth get`, whose first word it is.
Order parse_get(const CommandLine& line, const std::string& kind) {
  Parser parser(line);
  ClusterParser cluster(parser);
  GetOptions options{.kind = kind};
  std::string format = "table";
  parser.flag("-A,--all-namespaces", options.all_namespaces, "of all namespaces");
  parser.option("-l,--selector", options.selector, "SELECTOR", "labels, such as app=web,tier!=db");
  parser.option("-o,--output", format, "FORMAT", "table, wide, json, yaml or name [table]");
  parser.flag("-w,--watch", options.watch, "go on, and show each change");
  std::vector<std::string> words = parser.parse();
  if (kind.empty()) {
    split_at_slash(words);
    options.kind = take_word(words, "which kind? sandboxes, claims, pools, templates, pods, ...");
    if (!words.empty()) options.name = take_word(words, "which one?");
  }
  parser.refuse_words(words);
  if (!options.name.empty() && (options.all_namespaces || !options.selector.empty()))
    fail(Code::invalid, "a name goes without -A and -l: there is one such object at most");
  options.format = parse_format(format);
  options.cluster = cluster.finish();
  return KubeOrder(std::move(options));
}

// Names behind a verb that takes nothing else.
std::vector<std::string> parse_names(Parser& parser, const std::string& kind) {
  std::vector<std::string> names = parser.parse();
  if (names.empty() || std::ranges::find(names, "") != names.end())
    fail(Code::invalid, "which {}? 'hearth {} ls' lists them", kind, kind);
  return names;
}

Order parse_delete(const CommandLine& line, const std::string& kind) {
  Parser parser(line);
  ClusterParser cluster(parser);
  DeleteObjectsOptions options{.kind = kind};
  options.names = parse_names(parser, kind);
  options.cluster = cluster.finish();
  return KubeOrder(std::move(options));
}

Order parse_show(const CommandLine& line, const std::string& kind) {
  Parser parser(line);
  ClusterParser cluster(parser);
  std::string format = "yaml";
  parser.option("-o,--output", format, "FORMAT", "table, wide, json, yaml or name [yaml]");
  std::vector<std::string> names = parse_names(parser, kind);
  GetOptions options{.kind = kind, .name = take_word(names, "")};
  parser.refuse_words(names);
  options.format = parse_format(format);
  options.cluster = cluster.finish();
  return KubeOrder(std::move(options));
}

// What follows "--" is a command, and none of our words. Nothing where there is no "--".
std::optional<std::vector<std::string>> take_command(CommandLine& line) {
  const auto dashes = std::ranges::find(line.rest, "--");
  if (dashes == line.rest.end()) return std::nullopt;
  std::vector<std::string> command(dashes + 1, line.rest.end());
  line.rest.erase(dashes, line.rest.end());
  if (command.empty()) fail(Code::invalid, "no command behind '--'");
  return command;
}

std::string parse_when_empty(const std::string& text) {
  if (text == "cold") return "Cold";
  if (text == "wait") return "Wait";
  if (text == "fail") return "Fail";
  fail(Code::invalid, "--when-empty: '{}' is none of cold, wait and fail", text);
}

void check_label(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    fail(Code::invalid, "--label: '{}' is not KEY=VALUE", text);
}

void check_claim(const ClaimOptions& options) {
  for (const std::string& entry : options.environment) check_environment("--env", entry);
  for (const std::string& label : options.labels) check_label(label);
  if (!options.has_command) {
    if (options.remove)
      fail(Code::invalid, "--rm goes with a command: add one behind '--', or take -it for a shell");
    return;
  }
  if (options.wait == Duration::zero())
    fail(Code::invalid, "--wait 0: a command has to wait for its sandbox");
  if (!options.cluster.kubeconfig.empty() || !options.cluster.context.empty())
    fail(Code::invalid,
         "a command is run by the engine of this machine; for another cluster claim first, then "
         "'kubectl exec'");
}

Order parse_claim_create(CommandLine line) {
  auto command = take_command(line);
  Parser parser(line);
  ClusterParser cluster(parser);
  ClaimOptions options;
  std::string ttl, when_empty, wait = "30s", format = "table";
  parser.option("--name", options.name, "NAME", "of the claim [made up]");
  parser.options("-e,--env", options.environment, "NAME=VALUE",
                 "environment of the sandbox, where its template allows it; may be repeated");
  parser.options("--label", options.labels, "KEY=VALUE", "of the claim; may be repeated");
  parser.option("--ttl", ttl, "TIME", "delete it after so long, such as 10m [never]");
  parser.option("--when-empty", when_empty, "WHAT",
                "if nothing is ready: cold (make one), wait or fail [cold]");
  parser.option("--wait", wait, "TIME", "how long to wait for the sandbox; 0: not at all [30s]");
  parser.option("-o,--output", format, "FORMAT", "table, wide, json or name (of the claim)");
  parser.flag("--keep", options.keep, "keep a claim that failed, to look at");
  parser.flag("--rm", options.remove, "with a command: delete the claim when that has ended");
  parser.flag("-i,--interactive", options.command.interactive, "pass our input to the command");
  parser.flag("-t,--tty", options.command.terminal, "give the command a terminal");
  std::vector<std::string> words = parser.parse();
  options.pool = take_word(words, "of which pool? 'hearth pool ls' lists them");
  if (!words.empty())
    fail(Code::invalid, "'{}' is one word too many; a command goes behind '--'", words.front());
  options.has_command =
      command.has_value() || (options.command.interactive && options.command.terminal);
  options.command.command = std::move(command).value_or(std::vector<std::string>());
  if (!ttl.empty()) options.ttl = parse_timeout("--ttl", ttl);
  if (!when_empty.empty()) options.when_empty = parse_when_empty(when_empty);
  options.wait = wait == "0" ? Duration::zero() : parse_timeout("--wait", wait);
  options.format = parse_format(format, /*has_yaml=*/false);
  options.cluster = cluster.finish();
  check_claim(options);
  return KubeOrder(std::move(options));
}

Order parse_pool_create(const CommandLine& line) {
  Parser parser(line);
  ClusterParser cluster(parser);
  PoolCreateOptions options;
  std::string replicas = "1";
  parser.option("--template", options.sandbox_template, "NAME", "what its sandboxes are made of");
  parser.option("--replicas", replicas, "N", "how many it keeps ready [1]");
  parser.flag("--e2b", options.names_ids, "for the E2B API to hand out, instead of claims");
  std::vector<std::string> words = parser.parse();
  options.name = take_word(words, "what shall the pool be called?");
  parser.refuse_words(words);
  if (options.sandbox_template.empty())
    fail(Code::invalid, "of which template? --template; 'hearth template ls' lists them");
  options.replicas = parse_count("--replicas", replicas, kMostReplicas);
  options.cluster = cluster.finish();
  return KubeOrder(std::move(options));
}

Order parse_pool_scale(const CommandLine& line) {
  Parser parser(line);
  ClusterParser cluster(parser);
  PoolScaleOptions options;
  std::vector<std::string> words = parser.parse();
  options.name = take_word(words, "which pool? 'hearth pool ls' lists them");
  options.replicas = parse_count(
      "scale", take_word(words, "to how many? 'hearth pool scale NAME N'"), kMostReplicas);
  parser.refuse_words(words);
  options.cluster = cluster.finish();
  return KubeOrder(std::move(options));
}

void check_amount(const char* flag, const std::string& text) {
  const auto amount = model::Quantity::parse(text);
  if (!text.empty() && (!amount || amount->is_negative()))
    fail(Code::invalid, "{}: '{}' is no amount, such as 500m or 1Gi", flag, text);
}

std::string parse_env_policy(const std::string& text) {
  if (text == "allowed") return "Allowed";
  if (text == "overrides") return "Overrides";
  if (text == "disallowed") return "Disallowed";
  fail(Code::invalid, "--env-policy: '{}' is none of allowed, overrides and disallowed", text);
}

void check_template(const TemplateCreateOptions& options) {
  const bool has_parts = !options.image.empty() || !options.command.empty() ||
                         !options.environment.empty() || !options.cpu.empty() ||
                         !options.memory.empty() || !options.ports.empty() ||
                         !options.env_policy.empty() || !options.surfaces.empty() ||
                         !options.sudoers.empty() || options.is_public;
  if (!options.file.empty() && has_parts)
    fail(Code::invalid, "-f goes alone: everything is in that file");
  if (!options.file.empty()) return;
  if (options.name.empty()) fail(Code::invalid, "what shall the template be called?");
  if (options.image.empty())
    fail(Code::invalid, "of which image? --image, such as python:3.12, or 'host'; or -f FILE");
  for (const std::string& entry : options.environment) check_environment("--env", entry);
  check_amount("--cpu", options.cpu);
  check_amount("--memory", options.memory);
}

Order parse_template_create(CommandLine line) {
  auto command = take_command(line);
  Parser parser(line);
  ClusterParser cluster(parser);
  TemplateCreateOptions options;
  std::vector<std::string> ports;
  std::string env_policy;
  parser.option("--image", options.image, "IMAGE", "what sandboxes are made of; 'host': /usr");
  parser.options("-e,--env", options.environment, "NAME=VALUE", "environment; may be repeated");
  parser.option("--cpu", options.cpu, "AMOUNT", "processors, such as 500m");
  parser.option("--memory", options.memory, "AMOUNT", "such as 1Gi");
  parser.options("--port", ports, "N", "where it listens: it gets a service; may be repeated");
  parser.option("--env-policy", env_policy, "POLICY",
                "environment of claims: allowed, overrides or disallowed [disallowed]");
  parser.option("--surfaces", options.surfaces, "LIST",
                "what listens inside, such as envd,code [all, without a command]");
  parser.option("--sudo", options.sudoers, "USERS",
                "who may use sudo inside, such as user [nobody]");
  parser.flag("--public", options.is_public, "every team may use it");
  parser.option("-f,--file", options.file, "FILE",
                "a whole SandboxTemplate, as YAML; -: our input");
  std::vector<std::string> words = parser.parse();
  if (!words.empty()) options.name = take_word(words, "what shall the template be called?");
  if (!words.empty())
    fail(Code::invalid, "'{}' is one word too many; a command goes behind '--'", words.front());
  options.command = std::move(command).value_or(std::vector<std::string>());
  for (const std::string& port : ports) {
    options.ports.push_back(static_cast<std::uint16_t>(
        parse_count("--port", port, std::numeric_limits<std::uint16_t>::max())));
    if (options.ports.back() == 0) fail(Code::invalid, "--port: 0 is no port to listen on");
  }
  if (!env_policy.empty()) options.env_policy = parse_env_policy(env_policy);
  check_template(options);
  options.cluster = cluster.finish();
  return KubeOrder(std::move(options));
}

}  // namespace

Order parse_get(const CommandLine& line) {
  return parse_get(line, {});
}

Order parse_describe(const CommandLine& line) {
  Parser parser(line);
  ClusterParser cluster(parser);
  DescribeOptions options;
  std::vector<std::string> words = parser.parse();
  split_at_slash(words);
  options.kind = take_word(words, "which kind? 'hearth describe KIND NAME'");
  options.name = take_word(words, "which one? 'hearth describe KIND NAME'");
  parser.refuse_words(words);
  options.cluster = cluster.finish();
  return KubeOrder(std::move(options));
}

// A pool that is called 'ls' is claimed with 'create ls'.
Order parse_claim(const CommandLine& line) {
  const std::string action = line.rest.empty() ? "" : line.rest.front();
  if (action == "ls") return parse_get(behind_action(line), "claims");
  if (action == "delete") return parse_delete(behind_action(line), "claim");
  CommandLine create = line;
  if (action == "create") create.rest.erase(create.rest.begin());
  return parse_claim_create(std::move(create));
}

Order parse_pool(const CommandLine& line) {
  if (wants_overview(line)) return Help{.text = group_overview("pool")};
  const std::string& action = line.rest.front();
  if (action == "ls") return parse_get(behind_action(line), "pools");
  if (action == "create") return parse_pool_create(behind_action(line));
  if (action == "scale") return parse_pool_scale(behind_action(line));
  if (action == "delete") return parse_delete(behind_action(line), "pool");
  fail_no_action(line);
}

Order parse_template(const CommandLine& line) {
  if (wants_overview(line)) return Help{.text = group_overview("template")};
  const std::string& action = line.rest.front();
  if (action == "ls") return parse_get(behind_action(line), "templates");
  if (action == "create") return parse_template_create(behind_action(line));
  if (action == "show") return parse_show(behind_action(line), "template");
  if (action == "delete" || action == "rm") {
    CommandLine words = behind_action(line);
    words.verb = "template delete";
    return parse_delete(words, "template");
  }
  fail_no_action(line);
}

}  // namespace hearth::cli
