#include "cli/help.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "cli/values.h"

namespace hearth::cli {
namespace {

constexpr std::array<VerbHelp, 10> kVerbs = {{
    {.name = "up",
     .summary = "start the engine on this machine and stay until Ctrl-C",
     .usage = "[OPTIONS]",
     .footer = R"(Needs root, directly or through sudo. Only the part that makes sandboxes keeps it.
Ctrl-C (SIGINT) ends everything. SIGTERM ends the engine and leaves the sandboxes
running; the next 'hearth up' takes them over.

Examples:
  sudo hearth up --demo
  hearth up --state-dir /tmp/hearth --metrics-port 0
  hearth up --log-format json --log-level debug)"},
    {.name = "run",
     .summary = "make a sandbox and run a command in it",
     .usage = "[OPTIONS] [--] [COMMAND [ARGUMENT...]]",
     .footer = R"(The sandbox stays, with what the command left in it, unless --rm is given. Without
a command: -it opens a shell, -d just makes the sandbox.
Sizes are powers of 1024 (512m, 1.5g), times are 30s or 2m30s; 0 is no limit.

Exit codes:
  the command's own; 128+N when signal N ended it (137: killed, perhaps for lack of memory)
  124  it ran longer than --timeout
  125  the engine could not do it, or the command line makes no sense
  126  the program may not be executed
  127  there is no such program

Examples:
  hearth run --rm -- python3 -c 'print(6 * 7)'
  hearth run --rm -it
  echo hello | hearth run --rm -i -- tr a-z A-Z
  hearth run -d --name build --memory 2g --cpus 4
  hearth run --rm --timeout 5s --pids 64 -e LANG=C -w /tmp -- sh -c 'sleep 60')"},
    {.name = "exec",
     .summary = "run a command in a sandbox that exists",
     .usage = "[OPTIONS] ID [--] COMMAND [ARGUMENT...]",
     .footer = R"(Exit codes are those of 'hearth run'.

Examples:
  hearth exec build -- make -j4
  hearth exec -it build
  hearth exec -d build -- python3 -m http.server)"},
    {.name = "ls",
     .summary = "list sandboxes (also: ps)",
     .usage = "[OPTIONS]",
     .footer = R"(Examples:
  hearth ls
  hearth ls -o json
  hearth ls -o id | xargs hearth rm)"},
    {.name = "inspect",
     .summary = "tell everything about sandboxes, as JSON",
     .usage = "[OPTIONS] ID...",
     .footer = R"(Examples:
  hearth inspect build
  hearth inspect build test | python3 -m json.tool)"},
    {.name = "logs",
     .summary = "show what detached commands wrote",
     .usage = "[OPTIONS] ID",
     .footer = R"(The newest 256 KiB of a sandbox are kept.

Examples:
  hearth logs build
  hearth logs -f build)"},
    {.name = "rm",
     .summary = "end sandboxes and everything in them",
     .usage = "[OPTIONS] ID... | --all",
     .footer = R"(Examples:
  hearth rm build
  hearth rm --all)"},
    {.name = "env",
     .summary = "print shell lines that point clients at the engine",
     .usage = "[OPTIONS]",
     .footer = R"text(Examples:
  eval "$(hearth env)"
  hearth env --state-dir /tmp/hearth)text"},
    {.name = "doctor",
     .summary = "look at this machine: what works, what does not, what to do",
     .usage = "[OPTIONS]",
     .footer = R"(Exit code 1 when something is missing that sandboxes cannot do without.

Examples:
  hearth doctor
  hearth doctor -o json)"},
    {.name = "version",
     .summary = "print the versions of this program and of the engine",
     .usage = "[OPTIONS]",
     .footer = R"(Examples:
  hearth version
  hearth version -o json)"},
}};

}  // namespace

std::span<const VerbHelp> all_verbs() {
  return kVerbs;
}

const VerbHelp* find_verb_help(std::string_view name) {
  if (name == "ps") name = "ls";
  const auto* const found = std::ranges::find(kVerbs, name, &VerbHelp::name);
  return found == kVerbs.end() ? nullptr : found;
}

std::string overview() {
  std::string text = "hearth " HEARTH_VERSION
                     ": sandboxes for programs you do not trust\n\n"
                     "usage: hearth [--state-dir DIR] VERB [OPTIONS]\n\n";
  for (const VerbHelp& verb : kVerbs) text += fmt::format("  {:<9}{}\n", verb.name, verb.summary);
  text +=
      "\n'hearth VERB --help' tells more about one of them.\n"
      "The engine is found by --state-dir or HEARTH_STATE_DIR; else in /var/lib/hearth for root,\n"
      "in $XDG_STATE_HOME/hearth or ~/.local/state/hearth for others.\n";
  return text;
}

std::string describe_unknown_verb(std::string_view word) {
  std::vector<std::string_view> names = {"ps"};
  for (const VerbHelp& verb : kVerbs) names.push_back(verb.name);
  const std::string_view nearest = find_nearest(word, names);
  const std::string hint =
      nearest.empty() ? "'hearth --help' lists them" : fmt::format("did you mean '{}'?", nearest);
  return fmt::format("there is no verb '{}'; {}", word, hint);
}

}  // namespace hearth::cli
