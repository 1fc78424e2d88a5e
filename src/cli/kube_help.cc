// The words of `hearth claim ls --help`, `hearth pool --help` and so on.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/help.h"

namespace hearth::cli {
namespace {

constexpr std::array<VerbHelp, 17> kVerbs = {{
    {.name = "claim ls",
     .summary = "list claims and the sandboxes they have",
     .usage = "[OPTIONS]",
     .footer = R"(Examples:
  hearth claim ls
  hearth claim ls -A -o wide)"},
    {.name = "claim delete",
     .summary = "end claims, and their sandboxes with them",
     .usage = "[OPTIONS] NAME...",
     .footer = R"(Examples:
  hearth claim delete s-42)"},
    {.name = "pool ls",
     .summary = "list pools: how many sandboxes are ready, how many shall be",
     .usage = "[OPTIONS]",
     .footer = R"(Examples:
  hearth pool ls
  hearth pool ls -w)"},
    {.name = "pool create",
     .summary = "make a pool that keeps sandboxes of a template ready",
     .usage = "[OPTIONS] NAME --template NAME",
     .footer =
         R"(What else a pool can be told is in docs/pools.md, and in 'hearth kubectl explain swp.spec'.

Examples:
  hearth pool create py --template py --replicas 10
  hearth pool create web -n research --template web --replicas 4 --e2b
  hearth pool create ours -n research --template default/base --replicas 20 --e2b)"},
    {.name = "pool scale",
     .summary = "let a pool keep more or fewer ready",
     .usage = "[OPTIONS] NAME N",
     .footer = R"(Sandboxes that are claimed stay.

Examples:
  hearth pool scale py 50
  hearth pool scale py 0)"},
    {.name = "pool delete",
     .summary = "end pools, and the sandboxes that wait in them; claimed ones stay",
     .usage = "[OPTIONS] NAME...",
     .footer = R"(Examples:
  hearth pool delete py)"},
    {.name = "template ls",
     .summary = "list templates",
     .usage = "[OPTIONS]",
     .footer = R"(Examples:
  hearth template ls)"},
    {.name = "template create",
     .summary = "say what sandboxes are made of",
     .usage = "[OPTIONS] NAME --image IMAGE [-- COMMAND...] | -f FILE [NAME]",
     .footer =
         R"(Amounts of --cpu and --memory are what a sandbox is promised and the most it gets. Whether
claims may bring an environment is the template's to say: --env-policy.

Examples:
  hearth template create py --image python:3.12 --cpu 500m --memory 1Gi
  hearth template create web --image host --port 8000 -- python3 -m http.server
  hearth template create py --image python:3.12 --env-policy allowed
  hearth template create web -n research --image debian:12 --surfaces envd --cpu 2 --memory 1Gi
  hearth template create -f template.yaml)"},
    {.name = "template show",
     .summary = "print a template as YAML",
     .usage = "[OPTIONS] NAME",
     .footer = R"(Examples:
  hearth template show py > template.yaml)"},
    {.name = "template delete",
     .summary = "delete templates; what was made of them stays (also: rm)",
     .usage = "[OPTIONS] NAME...",
     .footer = R"(Examples:
  hearth template delete py)"},
    {.name = "team create",
     .summary = "make a team: a namespace, limits, keys of its own",
     .usage = "[OPTIONS] NAME",
     .footer =
         R"(A namespace that is there already becomes the team's. What is not said is the default, which
'hearth team limits NAME' shows. Sandboxes of a team are in its namespace.

Examples:
  hearth team create research
  hearth team create students --sandboxes 20 --rate 2 --lifetime 1h --cpus 2 --memory 2g)"},
    {.name = "team ls",
     .summary = "list teams and what they may use",
     .usage = "[OPTIONS]",
     .footer = R"(Examples:
  hearth team ls
  hearth team ls -o json)"},
    {.name = "team limits",
     .summary = "show or change what a team may use",
     .usage = "[OPTIONS] NAME",
     .footer =
         R"(Without options they are shown. Changes hold for what is made from now on.

Examples:
  hearth team limits research
  hearth team limits research --sandboxes 200)"},
    {.name = "team rm",
     .summary = "end teams: their keys, sandboxes, and everything else in their namespaces",
     .usage = "[OPTIONS] NAME...",
     .footer = R"(Examples:
  hearth team rm students)"},
    {.name = "key create",
     .summary = "make an API key of a team, and print it, once",
     .usage = "[OPTIONS]",
     .footer =
         R"(Only a hash of it is kept: what is lost is lost. The key alone comes on stdout. Limits narrow
those of the team.

Examples:
  hearth key create
  hearth key create --team research --name ci --expires 720h > ci.key
  hearth key create --team research --sandboxes 5 --lifetime 10m)"},
    {.name = "key ls",
     .summary = "list API keys, without what opens the door",
     .usage = "[OPTIONS]",
     .footer = R"(Examples:
  hearth key ls
  hearth key ls --team research -o json)"},
    {.name = "key rm",
     .summary = "revoke API keys; they stop working at once",
     .usage = "[OPTIONS] ID...",
     .footer = R"(Examples:
  hearth key rm 3f0c9d2b1a4e5f60)"},
}};

}  // namespace

const VerbHelp* find_kube_verb_help(std::string_view name) {
  const auto* const found = std::ranges::find(kVerbs, name, &VerbHelp::name);
  return found == kVerbs.end() ? nullptr : found;
}

namespace {

std::string_view examples_of(std::string_view group) {
  if (group == "team" || group == "key")
    return "  hearth team create research --sandboxes 50\n"
           "  hearth key create --team research --name ci\n"
           "  hearth key ls\n";
  return "  hearth template create py --image python:3.12\n"
         "  hearth pool create py --template py --replicas 10\n"
         "  hearth claim py\n";
}

}  // namespace

std::string group_overview(std::string_view group) {
  std::string text = fmt::format("usage: hearth {} VERB [OPTIONS]\n\n", group);
  for (const VerbHelp& verb : kVerbs) {
    if (!verb.name.starts_with(group) || verb.name[group.size()] != ' ') continue;
    text += fmt::format("  {:<9}{}\n", verb.name.substr(group.size() + 1), verb.summary);
  }
  return text + fmt::format("\n'hearth {} VERB --help' tells more about one of them.\n\n", group) +
         "Examples:\n" + std::string(examples_of(group));
}

}  // namespace hearth::cli
