#include "bench/subject.h"

#include <array>

namespace hearth::bench {
namespace {

constexpr std::array<Kind, 7> kKinds = {{
    {.name = "hearth",
     .what = "the engine, asked over its socket by this process",
     .lives = true,
     .execs = true,
     .idles = true,
     .make = &make_hearth},
    {.name = "hearth_cli",
     .what = "the same engine, by the command line: 'hearth run --rm', 'hearth exec'",
     .lives = true,
     .execs = true,
     .make = &make_hearth_cli},
    {.name = "bwrap",
     .what = "bubblewrap; has no exec and no limits",
     .lives = true,
     .idles = true,
     .make = &make_bubblewrap},
    {.name = "crun",
     .what = "OCI runtime in C: 'crun run', 'crun exec'",
     .lives = true,
     .execs = true,
     .idles = true,
     .make = &make_crun},
    {.name = "runc",
     .what = "OCI runtime in Go: 'runc run', 'runc exec'",
     .lives = true,
     .execs = true,
     .idles = true,
     .make = &make_runc},
    {.name = "nsenter",
     .what = "joins the namespaces of a bubblewrap sandbox, not its other confinement",
     .execs = true,
     .make = &make_nsenter},
    {.name = "fork_exec",
     .what = "no sandbox at all: vfork, exec and wait on the host",
     .lives = true,
     .execs = true,
     .make = &make_fork_exec},
}};

}  // namespace

std::span<const Kind> all_kinds() {
  return kKinds;
}

}  // namespace hearth::bench
