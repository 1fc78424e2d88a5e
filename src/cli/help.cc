#include "cli/help.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "cli/values.h"

namespace hearth::cli {
namespace {

constexpr std::array<VerbHelp, 36> kVerbs = {{
    {.name = "up",
     .summary = "start the engine on this machine and stay until Ctrl-C",
     .usage = "[OPTIONS]",
     .footer = R"(Needs root, directly or through sudo. Only the part that makes sandboxes keeps it.
Ctrl-C (SIGINT) ends everything. SIGTERM ends the engine and leaves the sandboxes
running, if there are any; the next 'hearth up' takes them over.

Examples:
  sudo hearth up --demo
  hearth up --state-dir /tmp/hearth --metrics-port 0
  hearth up --log-format json --log-level debug
  hearth up --warm 64 --allow-host-path /srv/data --image-quota 20g
  hearth up --e2b-warm 32 --e2b-domain sbx.test --e2b-tls-port 8443)"},
    {.name = "run",
     .summary = "make a sandbox and run a command in it",
     .usage = "[OPTIONS] [--] [COMMAND [ARGUMENT...]]",
     .footer = R"(The sandbox stays, with what the command left in it, unless --rm is given. Without
a command it is the image's own; where there is none, -it opens a shell, -d just makes
the sandbox.
It may talk to the world, but not to this host or other sandboxes (--open). A rule is
ADDRESS[/PREFIX][:PORT[-PORT]][/tcp|/udp]; --allow without --network means: nothing else.
A volume is made when it is not there, and outlives sandboxes. Paths of this machine are
those that 'hearth up --allow-host-path' named.
Sizes are powers of 1024 (512m, 1.5g), times are 30s or 2m30s; 0 is no limit.
What is written is kept in memory, and counts as such, unless --disk-on disk puts it into
a file system of that size on the engine's disk, which takes some 40 ms to make.
The --io limits are for the disk that the engine keeps its files on (volumes, images); with
cgroups v1 they hold for what is read, and written past the cache or synced.
A --ulimit is one of getrlimit(2), soft and hard (as, cpu, fsize, nofile, nproc, stack,
...); the engine's own are the most it can give. Unless named, nofile is 1048576 or as
much as there is, and core is 0.

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
  hearth run --rm --image python:3.12 -it
  hearth run --rm --network none -v cache:/cache -v /srv/data:/data:ro -- ls /data
  hearth run -d --name box --serve envd,code --token-file token
  hearth run --rm --allow 10.1.0.0/16:443/tcp --secret /run/key=key.pem -- ./fetch
  hearth run -d --name big --disk 50g --disk-on disk
  hearth run --rm --ulimit nofile=1024:4096 --ulimit cpu=60 -- ./build
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
     .footer =
         R"(What they wrote to stderr comes on stderr. It is kept on disk until the sandbox is removed,
as far as 'hearth run --log-size' and '--log-files' allow, oldest lost first. A time is
when the first part of a line was seen.

Examples:
  hearth logs build
  hearth logs -f --tail 20 build
  hearth logs --since 10m --timestamps build)"},
    {.name = "attach",
     .summary = "watch a detached command, and type for it",
     .usage = "[OPTIONS] ID",
     .footer =
         R"(Shows what it writes from now on, and ends with it and its exit code. What you type reaches
one that was started with -i or -t; the end of our input does not end its. Ctrl-p ctrl-q
leaves it running. Any number may be attached at once.

Examples:
  hearth run -dit --name shell; hearth attach shell
  hearth attach --no-stdin --sig-proxy=false build)"},
    {.name = "rm",
     .summary = "end sandboxes and everything in them",
     .usage = "[OPTIONS] ID... | --all",
     .footer = R"(Examples:
  hearth rm build
  hearth rm --all)"},
    {.name = "pause",
     .summary = "let sandboxes stand still, memory kept",
     .usage = "[OPTIONS] ID...",
     .footer = R"(Examples:
  hearth pause build
  hearth ls -o id | xargs hearth pause)"},
    {.name = "resume",
     .summary = "let paused sandboxes go on",
     .usage = "[OPTIONS] ID...",
     .footer = R"(Examples:
  hearth resume build)"},
    {.name = "stop",
     .summary = "end everything that runs in sandboxes; their files stay",
     .usage = "[OPTIONS] ID...",
     .footer =
         R"(Processes get SIGTERM, and SIGKILL when their time is over. What was to be started again
is not. The sandbox itself can be used as before.

Examples:
  hearth stop build
  hearth stop -t 0 build)"},
    {.name = "commit",
     .summary = "make an image of a sandbox's files",
     .usage = "[OPTIONS] ID NAME",
     .footer =
         R"(Prints the image's id. The sandbox stands still meanwhile. What is mounted into it is
no part of the image.

Examples:
  hearth commit build mine:1
  hearth run --rm --image mine:1 -- ls)"},
    {.name = "fork",
     .summary = "make sandboxes with the same files, limits, mounts and network",
     .usage = "[OPTIONS] ID",
     .footer = R"(Prints their ids. Files are copied as they are at one moment; processes are not.

Examples:
  hearth fork build
  hearth fork -n 3 build)"},
    {.name = "network",
     .summary = "change whom a sandbox may talk to",
     .usage = "[OPTIONS] ID",
     .footer = R"(Takes the place of all rules before, at once, for open connections too. A rule is
ADDRESS[/PREFIX][:PORT[-PORT]][/tcp|/udp]; --allow without --mode means: nothing else.

Examples:
  hearth network build --mode none
  hearth network build --allow 1.1.1.1:443/tcp --allow 10.1.0.0/16
  hearth network build --mode world --deny 10.0.0.0/8 --open 192.168.1.5:5432/tcp)"},
    {.name = "forward",
     .summary = "bring ports of a sandbox to this machine's loopback",
     .usage = "[OPTIONS] ID [LOCAL:]PORT...",
     .footer =
         R"(Stays until Ctrl-C. Works whatever the sandbox's network is, also for what listens on
its loopback only. LOCAL 0 takes a free port; what was taken is printed.

Examples:
  hearth forward box 8080
  hearth forward box 3000:8080 0:49983)"},
    {.name = "ports",
     .summary = "tell which ports somebody listens on in a sandbox",
     .usage = "[OPTIONS] ID",
     .footer = R"(Examples:
  hearth ports box
  hearth ports -f box)"},
    {.name = "configure",
     .summary = "make a sandbox that was made ahead of time somebody's",
     .usage = "[OPTIONS] ID",
     .footer = R"(All of it happens or nothing, and only once in a sandbox's life.

Examples:
  hearth configure box -e API=https://example.com -u user -w /work
  hearth configure box --hostname alice --secret /run/key=key.pem --token-file token)"},
    {.name = "stats",
     .summary = "show what sandboxes use: processors, memory, disks, network",
     .usage = "[OPTIONS] [ID...]",
     .footer = R"(Examples:
  hearth stats
  hearth stats build -o json)"},
    {.name = "volume",
     .summary = "make, list and remove volumes",
     .usage = "create NAME [--size SIZE] | ls [OPTIONS] | rm NAME...",
     .footer =
         R"(Volumes are also made by 'hearth run -v NAME:/target', without a size: they can fill the
engine's disk. With one, a volume is a file system of its own, and full when it is full.
One that a sandbox uses stays.

Examples:
  hearth volume create cache --size 10g
  hearth volume ls
  hearth volume ls -o json
  hearth volume rm cache)"},
    {.name = "image",
     .summary = "get images from registries and archives, list and remove them",
     .usage = "VERB [OPTIONS]",
     .footer = {}},
    {.name = "get",
     .summary = "list objects of the Kubernetes API, or show one",
     .usage = "[OPTIONS] KIND [NAME]",
     .footer =
         R"(KIND is sandboxes, claims, pools, templates, pods, or any other name of a kind that the
cluster has, with its group behind a dot where two have the same. Nothing found is no
error. What runs on this machine, with or without an object, is listed by 'hearth ls'.

Examples:
  hearth get claims -A
  hearth get pool py -o yaml
  hearth get sandboxes -l app=web -w
  hearth get pods --kubeconfig ~/.kube/config --context staging)"},
    {.name = "describe",
     .summary = "tell the story of an object: what it is, what belongs to it, what happened",
     .usage = "[OPTIONS] KIND NAME",
     .footer =
         R"(Events are those of the object and of what it has made, newest last; '!' is a warning.

Examples:
  hearth describe claim s-42
  hearth describe pool py)"},
    {.name = "claim",
     .summary = "take a sandbox from a pool, and perhaps run a command in it",
     .usage = "[OPTIONS] POOL [-- COMMAND [ARGUMENT...]] | ls | delete NAME...",
     .footer =
         R"(Waits until the sandbox is ready, and prints its name, its address and how long it took. A
claim that fails, or is interrupted, is deleted. --ttl counts by the clock of this machine.
'hearth claim create POOL' is the same, for a pool that is called 'ls' or 'delete'.

Exit codes with a command are those of 'hearth run'; 128+N when signal N ended the wait.

Examples:
  hearth claim py
  hearth claim py --rm -- python3 -c 'print(6 * 7)'
  hearth claim py --rm -it
  hearth claim py --name s-42 --ttl 10m -e TENANT=alice --label team=a
  name=$(hearth claim py -o name); hearth claim delete "$name")"},
    {.name = "pool",
     .summary = "make, list, scale and delete pools of sandboxes that wait for claims",
     .usage = "ls | create NAME --template NAME | scale NAME N | delete NAME...",
     .footer = {}},
    {.name = "template",
     .summary = "make, list, show and delete what sandboxes of pools are made of",
     .usage = "ls | create NAME --image IMAGE | show NAME | delete NAME...",
     .footer = {}},
    {.name = "team",
     .summary = "make, list, limit and remove teams, who share sandboxes and keys",
     .usage = "ls | create NAME | limits NAME | rm NAME...",
     .footer = {}},
    {.name = "key",
     .summary = "make, list and revoke API keys of teams",
     .usage = "ls | create | rm ID...",
     .footer = {}},
    {.name = "kubectl",
     .summary = "run kubectl against the engine's Kubernetes API",
     .usage = "[ARGUMENT...]",
     .footer =
         R"(Everything behind the verb is kubectl's. It needs a kubectl on this machine and an engine
that runs, and is the same as: KUBECONFIG=DIR/admin.kubeconfig kubectl ...
Its exit code is kubectl's; kubectl's own help is 'hearth kubectl help'.

Examples:
  hearth kubectl get sandboxes -A
  hearth kubectl apply -f sandbox.yaml
  hearth kubectl explain sandbox.spec)"},
    {.name = "apiserver",
     .summary = "serve the Kubernetes API alone, without sandboxes: for testing controllers",
     .usage = "[OPTIONS]",
     .footer =
         R"(Keeps objects, and nothing acts on them but garbage collection and namespaces that end.
Needs no root. DIR/admin.kubeconfig and DIR/admin.token are written for their owner alone, and
DIR/endpoints.json tells where it listens. Ctrl-C or SIGTERM end it.

Examples:
  hearth apiserver --state-dir /tmp/api --kube-port 0
  hearth --state-dir /tmp/api kubectl get crds)"},
    {.name = "backup",
     .summary = "write all objects of the Kubernetes API to a file",
     .usage = "FILE",
     .footer =
         R"(Of an engine that runs, by asking it, or of one that does not. The file is its owner's
alone: secrets are in it. Keys and certificates are not: they stay in the state folder.

Examples:
  hearth backup objects-monday.db)"},
    {.name = "restore",
     .summary = "put the objects of a backup back",
     .usage = "[OPTIONS] FILE",
     .footer =
         R"(Not while an engine runs. The file is verified first, as a whole; what was there is
kept beside it.

Examples:
  hearth restore objects-monday.db
  hearth restore --replace objects-monday.db)"},
    {.name = "controller",
     .summary = "run the controllers against a cluster's Kubernetes API",
     .usage = "[OPTIONS]",
     .footer =
         R"(Of Sandboxes, and of claims, pools and templates where the cluster has those. The flags are
those of agent-sandbox-controller. The cluster is found by --kubeconfig, else by the
environment's KUBECONFIG, else it is the one whose pod this runs in. See docs/controllers.md.

Examples:
  hearth crds | kubectl apply -f -
  hearth controller --kubeconfig ~/.kube/config --context staging
  hearth controller --leader-elect=false --metrics-bind-address 127.0.0.1:8080)"},
    {.name = "crds",
     .summary = "print the definitions of our kinds, for kubectl apply",
     .usage = "[OPTIONS]",
     .footer =
         R"(The engine's own API has them already, in all versions. v1alpha1 needs a webhook that
converts it: see docs/controllers.md, "Versions".

Examples:
  hearth crds | kubectl apply -f -
  hearth crds --conversion-service hearth-system/hearth-webhook | kubectl apply -f -)"},
    {.name = "env",
     .summary = "print shell lines that point clients at the engine",
     .usage = "[OPTIONS]",
     .footer =
         R"text(For kubectl, and for the SDKs and the command line of E2B, with the engine's first API key if
it is yours to read.

Examples:
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
  if (found != kVerbs.end()) return found;
  const VerbHelp* const of_image = find_image_verb_help(name);
  return of_image == nullptr ? find_kube_verb_help(name) : of_image;
}

std::string overview() {
  std::string text = "hearth " HEARTH_VERSION
                     ": sandboxes for programs you do not trust\n\n"
                     "usage: hearth [--state-dir DIR] VERB [OPTIONS]\n\n";
  for (const VerbHelp& verb : kVerbs) text += fmt::format("  {:<11}{}\n", verb.name, verb.summary);
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
