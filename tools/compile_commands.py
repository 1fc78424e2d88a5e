"""How the build compiles its files, for tools that look at them once more."""
import json
import pathlib
import shlex


def entries(build):
    return json.loads(pathlib.Path(build, "compile_commands.json").read_text())


def arguments_of(entry):
    """The compiler's arguments that matter to its front: no output, no input, no precompiled header."""
    words = shlex.split(entry["command"])
    words = words[next(i for i, word in enumerate(words) if "clang" in word) + 1:]
    kept, skip = [], 0
    for i, word in enumerate(words):
        if skip:
            skip -= 1
        elif word == "-o":
            skip = 1
        elif word == "-Xclang" and words[i + 1] in ("-include-pch", "-include"):
            skip = 3
        elif word not in ("-c", "-Winvalid-pch", "-fpch-instantiate-templates", entry["file"]):
            kept.append(word)
    return tuple(kept)
