// The words of `hearth image --help`.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/help.h"

namespace hearth::cli {
namespace {

constexpr std::array<VerbHelp, 6> kImageVerbs = {{
    {.name = "image pull",
     .summary = "get images from a registry",
     .usage = "[OPTIONS] NAME...",
     .footer =
         R"(Names are Docker's: 'python:3.12' is docker.io/library/python:3.12. Credentials are those
of 'docker login', unless --user says otherwise. A download that was cut off goes on
where it stopped.

Examples:
  hearth image pull python:3.12
  hearth image pull ghcr.io/team/app@sha256:...
  hearth image pull --plain-http localhost:5000/app:1
  hearth image pull -u me --password-stdin registry.example.com/app < token)"},
    {.name = "image load",
     .summary = "get images from what 'docker save' wrote, or an OCI layout",
     .usage = "[OPTIONS] [FILE|FOLDER|-]",
     .footer =
         R"(Archives may be compressed. Without a file, or with '-', it is read from standard input.

Examples:
  docker save app:1 | hearth image load
  hearth image load app.tar.gz
  hearth image load --name app:1 oci-folder)"},
    {.name = "image import",
     .summary = "make an image of a root file system",
     .usage = "[OPTIONS] FILE|FOLDER|- --name NAME [-- COMMAND...] | --debian SUITE [OPTIONS]",
     .footer =
         R"(What follows '--' is what runs where nothing else is asked for. Folders are for root: their
files keep their owners.

Examples:
  hearth image import rootfs.tar.xz --name mine:1 -- /bin/bash
  hearth image import --debian bookworm --include python3,git
  hearth image import --debian trixie --name base -e LANG=C.UTF-8)"},
    {.name = "image ls", .summary = "list images", .usage = "[OPTIONS]", .footer = R"(Examples:
  hearth image ls
  hearth image ls -o json)"},
    {.name = "image inspect",
     .summary = "tell everything about images, as JSON",
     .usage = "[OPTIONS] NAME|ID...",
     .footer = R"(Examples:
  hearth image inspect python:3.12)"},
    {.name = "image rm",
     .summary = "forget images; sandboxes that use them go on",
     .usage = "[OPTIONS] NAME|ID...",
     .footer = R"(Examples:
  hearth image rm python:3.12)"},
}};

}  // namespace

const VerbHelp* find_image_verb_help(std::string_view name) {
  const auto* const found = std::ranges::find(kImageVerbs, name, &VerbHelp::name);
  return found == kImageVerbs.end() ? nullptr : found;
}

std::string image_overview() {
  std::string text = "usage: hearth image VERB [OPTIONS]\n\n";
  for (const VerbHelp& verb : kImageVerbs) {
    text += fmt::format("  {:<9}{}\n", verb.name.substr(6), verb.summary);
  }
  return text +
         "\n'hearth image VERB --help' tells more about one of them.\n\n"
         "Examples:\n"
         "  hearth image pull python:3.12\n"
         "  hearth run --rm --image python:3.12 -- python3 -c 'print(6 * 7)'\n";
}

}  // namespace hearth::cli
