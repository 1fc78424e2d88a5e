"""Writes one .cc with the files of api/ as strings, for schema/table.h.

    embed.py TARGET NAME=PATH...        paths that end in .yaml become compact JSON
"""
import json
import pathlib
import sys

import yaml

# Shorter pieces keep the lines readable.
PIECE = 1000


def text_of(path):
    text = pathlib.Path(path).read_text()
    if path.endswith(".yaml"):
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        text = json.dumps(yaml.load(text, loader), separators=(",", ":"))
    return text.encode()


def literal(data):
    pieces = []
    for at in range(0, len(data), PIECE):
        pieces.append('    "%s"' % "".join(
            chr(c) if 32 <= c < 127 and chr(c) not in '"\\?' else "\\%03o" % c
            for c in data[at:at + PIECE]))
    return "\n".join(pieces) or '    ""'


def main(target, arguments):
    entries = []
    for argument in arguments:
        name, path = argument.split("=", 1)
        data = text_of(path)
        entries.append('      {"%s", std::string_view(\n%s,\n    %d)},' % (name, literal(data), len(data)))
    pathlib.Path(target).write_text("""#include "schema/table.h"

#pragma clang diagnostic ignored "-Woverlength-strings"

namespace hearth::schema {

const std::vector<EmbeddedFile>& embedded_files() {
  static const std::vector<EmbeddedFile> files = {
%s
  };
  return files;
}

}  // namespace hearth::schema
""" % "\n".join(entries))


main(sys.argv[1], sys.argv[2:])
