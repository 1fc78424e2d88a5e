"""From what people write in cells to Python: pasted prompts and indentation go, %magics, !commands and help? are calls.

Magics are only looked for when a cell is not Python as it stands, so Python's own % and ! are never mistaken; or when
its one line begins with a word that nothing is called by, as in `pip install x`.
"""
import re

core = core  # given by the driver

LINE = re.compile(r"^(\s*)(?:([A-Za-z_][\w.,\s\[\]'\"]*?)\s*=\s*)?(%|!!?)(?!=)(.*)$")
HELP = re.compile(r"^(\s*)(?:(\?{1,2})\s*(%{0,2}[\w.*]+)|(%{0,2}[\w.*]+)(\?{1,2}))\s*;?\s*$")
ESCAPED = re.compile(r"^(\s*)([,;/])([A-Za-z_][\w.]*)(?:\s+(.*)|\s*)$")
MARK = re.compile(r"\"\"\"|'''|[\"'#(\[{)\]}]")
QUOTE_END = {quote: re.compile(r"(?:\\.|[^\\])*?" + quote) for quote in ("'", '"', "'''", '"""')}
# Of Python's own prompt and of IPython's: how a cell begins that has them, and what is taken away.
PROMPTS = ((re.compile(r">>>( |$)"), re.compile(r"(>>>|\.\.\.)( |$)")),
           (re.compile(r"In \[\d+\]: ?"), re.compile(r"(In \[\d+\]:| *\.{3,}:)( |$)")))


def clean(code):
    """Without what a cell has from where it was copied: empty lines before, indentation of all lines, prompts."""
    lines = code.lstrip("\r\n").split("\n")
    while len(lines) > 1 and not lines[0].strip():
        del lines[0]
    indent = lines[0][:len(lines[0]) - len(lines[0].lstrip(" \t"))]
    if indent:
        lines = [line[len(indent):] if line.startswith(indent) else line for line in lines]
    for begins, prompt in PROMPTS:
        if begins.match(lines[0]) or len(lines) > 1 and prompt.match(lines[1]):
            lines = [prompt.sub("", line, 1) if prompt.match(line) else line for line in lines]
    return "\n".join(lines)


def transform(code):
    stripped = code.lstrip()
    if stripped.startswith("%%"):
        first, _, rest = stripped.partition("\n")
        if HELP.match(first):
            return transform_line(first)
        name, _, line = first[2:].partition(" ")
        if rest and not rest.endswith("\n"):
            rest += "\n"
        return "get_ipython().run_cell_magic(%r, %r, %r)" % (name.strip(), line.strip(), rest)
    lines = code.split("\n")
    changed = []
    place = Place()
    while lines:
        line = lines.pop(0)
        if not place.begins_statement():
            place.read(line)
        elif LINE.match(line):
            while line.endswith("\\") and lines:
                line = line[:-1] + lines.pop(0)
            line = transform_line(line)
        elif HELP.match(line) or ESCAPED.match(line):
            line = transform_line(line)
        else:
            place.read(line)
        changed.append(line)
    return "\n".join(changed)


def automagic(code):
    """A cell of one line whose % is left out. Whether its first word is free, the caller has seen."""
    name, _, line = code.strip().partition(" ")
    if name not in core.part("magics").LINE_MAGICS:
        return None
    return "get_ipython().run_line_magic(%r, %r)" % (name, line.strip())


class Place:
    """How far Python has come: inside strings and brackets no line begins a statement."""

    def __init__(self):
        self.depth, self.quote, self.continued = 0, "", False

    def begins_statement(self):
        return not self.depth and not self.quote and not self.continued

    def read(self, line):
        self.continued = line.endswith("\\")
        rest = line
        while rest:
            if self.quote:
                end = QUOTE_END[self.quote].match(rest)
                if not end:
                    break
                self.quote, rest = "", rest[end.end():]
                continue
            mark = MARK.search(rest)
            if not mark:
                break
            if mark[0] == "#":
                self.continued = False
                break
            self.take(mark[0])
            rest = rest[mark.end():]
        if len(self.quote) == 1 and not self.continued:
            self.quote = ""  # a mistake of this line alone

    def take(self, mark):
        if mark in "([{":
            self.depth += 1
        elif mark in ")]}":
            self.depth = max(0, self.depth - 1)
        else:
            self.quote = mark


def transform_line(line):
    found = HELP.match(line)
    if found:
        indent, before, asked, named, after = found.groups()
        magic = "pinfo2" if (before or after) == "??" else "pinfo"
        return "%sget_ipython().run_line_magic(%r, %r)" % (indent, magic, asked or named)
    found = LINE.match(line)
    if found:
        indent, target, kind, rest = found.groups()
        if kind == "%":
            name, _, arguments = rest.partition(" ")
            call = "get_ipython().run_line_magic(%r, %r)" % (name, arguments.strip())
        elif target or kind == "!!":
            call = "get_ipython().getoutput(%r)" % rest.strip()
        else:
            call = "get_ipython().system(%r)" % rest.strip()
        return indent + (target + " = " if target else "") + call
    indent, kind, name, rest = ESCAPED.match(line).groups()
    rest = rest or ""
    if kind == ",":
        return "%s%s(%s)" % (indent, name, ", ".join('"%s"' % word for word in rest.split()))
    return '%s%s("%s")' % (indent, name, rest) if kind == ";" else "%s%s(%s)" % (indent, name, rest)
