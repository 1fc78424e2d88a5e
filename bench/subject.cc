#include "bench/subject.h"

#include <array>

namespace hearth::bench {
namespace {

constexpr std::array<Kind, 10> kKinds = {{
    {.name = "hearth",
     .what = "the engine, asked over its socket by this process; nothing is made ahead",
     .cold_cycle = true,
     .exec_live = true,
     .sustained = true,
     .idle = true,
     .pause_resume = true,
     .small_files = true,
     .make = &make_hearth},
    {.name = "hearth_pooled",
     .what = "another engine, with 64 shells ready, each with a link to the world",
     .pooled_cycle = true,
     .make = &make_hearth_pooled},
    {.name = "hearth_cli",
     .what = "the first engine, by the command line: 'hearth run --rm', 'hearth exec'",
     .cold_cycle = true,
     .exec_live = true,
     .sustained = true,
     .make = &make_hearth_cli},
    {.name = "bwrap",
     .what = "has no exec, no pause and no limits",
     .cold_cycle = true,
     .pooled_cycle = true,
     .sustained = true,
     .idle = true,
     .small_files = true,
     .make = &make_bubblewrap},
    {.name = "crun",
     .what = "OCI runtime in C, by its command line",
     .cold_cycle = true,
     .pooled_cycle = true,
     .exec_live = true,
     .sustained = true,
     .idle = true,
     .pause_resume = true,
     .make = &make_crun},
    {.name = "runc",
     .what = "OCI runtime in Go, by its command line",
     .cold_cycle = true,
     .pooled_cycle = true,
     .exec_live = true,
     .sustained = true,
     .idle = true,
     .pause_resume = true,
     .make = &make_runc},
    {.name = "nsenter",
     .what = "joins the namespaces of a bubblewrap sandbox, not its other confinement",
     .exec_live = true,
     .make = &make_nsenter},
    {.name = "fork_exec",
     .what = "no sandbox at all: vfork, exec and wait on the host",
     .cold_cycle = true,
     .exec_live = true,
     .make = &make_fork_exec},
    {.name = "native",
     .what = "no sandbox at all: files on the file system that the engine's state is on",
     .small_files = true,
     .make = &make_native},
    {.name = "native_memory",
     .what = "the same in memory, which is where a sandbox's writable layer is",
     .small_files = true,
     .make = &make_native_memory},
}};

}  // namespace

std::span<const Kind> all_kinds() {
  return kKinds;
}

}  // namespace hearth::bench
