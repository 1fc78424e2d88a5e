"""Writes drivers.cc: every file named on the command line as a string, for interpreter/drivers.h."""
import pathlib
import sys

# Compilers accept 64 KiB of one literal; shorter pieces also keep the lines readable.
PIECE = 1000


def literal(data):
    escaped = []
    for at in range(0, len(data), PIECE):
        piece = "".join(chr(c) if 32 <= c < 127 and chr(c) not in '"\\?' else "\\%03o" % c
                        for c in data[at:at + PIECE])
        escaped.append('    "%s"' % piece)
    return "\n".join(escaped) or '    ""'


def main(target, paths):
    entries = []
    for path in sorted(map(pathlib.Path, paths)):
        data = path.read_bytes()
        entries.append('    {"%s", std::string_view(\n%s,\n    %d)},' % (path.stem, literal(data), len(data)))
    pathlib.Path(target).write_text("""#include "interpreter/drivers.h"

#include <array>
#include <utility>

#include "base/error.h"

namespace hearth::interpreter {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, %d> kDrivers = {{
%s
}};

}  // namespace

std::string_view driver_text(std::string_view name) {
  for (const auto& [known, text] : kDrivers) {
    if (known == name) return text;
  }
  fail(Code::internal, "there is no driver '{}'", name);
}

}  // namespace hearth::interpreter
""" % (len(entries), "\n".join(entries)))


main(sys.argv[1], sys.argv[2:])
