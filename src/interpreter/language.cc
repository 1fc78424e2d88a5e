#include "interpreter/language.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "interpreter/drivers.h"

namespace hearth::interpreter {
namespace {

using namespace std::chrono_literals;

// Reads the parts of the driver from the socket and becomes it.
constexpr std::string_view kPythonBootstrap = R"(import os
f = os.fdopen(os.dup(0), "rb")
p = {}
for w in f.readline().split():
    n, s = w.decode().split(":")
    p[n] = f.read(int(s))
exec(compile(p["driver"], "<hearth driver>", "exec"), {"__name__": "_hearth_driver", "PARTS": p, "CONTROL": f.fileno(), "KEEP": f})
)";
constexpr auto kPythonParts = std::to_array<std::string_view>(
    {"awaiting",        "cell_magics",  "charts",  "compiling", "display", "driver",
     "errors",          "figures",      "finders", "history",   "imports", "interactivity",
     "ipython_modules", "ipython_shim", "magics",  "names",     "pretty",  "shell",
     "timing",          "transform",    "values"});

// In braces: its names would be every cell's.
constexpr std::string_view kNodeBootstrap = R"({
  const fs = require('fs');
  const read = (size) => {
    const bytes = Buffer.alloc(size);
    for (let at = 0; at < size;) {
      const got = fs.readSync(3, bytes, at, size - at);
      if (got === 0) process.exit(0);
      at += got;
    }
    return bytes.toString();
  };
  let size = '';
  for (let digit; (digit = read(1)) !== '\n';) size += digit;
  const load = (name, options) => import(name, options);
  new Function('control', 'require', 'load', read(Number(size)))(3, require, load);
})";
// Node cannot move descriptors; the shell that starts it can.
constexpr std::string_view kNodeStart = R"(exec node -e "$1" 3<&0 0</dev/null)";

Kit python_kit() {
  std::string head;
  std::string body;
  for (const std::string_view part : kPythonParts) {
    const std::string_view text = driver_text(part);
    head += fmt::format("{}:{} ", part, text.size());
    body += text;
  }
  return {.program = "python3",
          .command = {"python3", "-c", std::string(kPythonBootstrap)},
          .first_words = head + '\n' + body,
          .signal_again = 500ms};
}

Kit node_kit() {
  const std::string_view text = driver_text("node_driver");
  return {
      .program = "node",
      .command = {"/bin/sh", "-c", std::string(kNodeStart), "hearth", std::string(kNodeBootstrap)},
      .first_words = fmt::format("{}\n{}", text.size(), text),
      // While it changes its handlers a signal ends it: only for what does not listen.
      .signal_after = 100ms,
      .signal_again = 500ms};
}

// The launcher of sources seeks in what it runs: a file, which has lost its name by then. It is
// told of interrupts; a signal would end it. Classes are compiled for one run: the fast compiler is
// enough.
constexpr std::string_view kJavaStart =
    R"(trap '' INT; f=$(mktemp) && exec 3<&0 0</dev/null 4<>"$f" && rm "$f" &&
printf %s "$1" >&4 && exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto \
  --add-modules jdk.jshell --add-opens java.base/java.io=ALL-UNNAMED \
  --add-opens java.base/java.util=ALL-UNNAMED --source 11 /proc/self/fd/4)";

Kit java_kit() {
  return {.program = "java",
          .command = {"/bin/sh", "-c", std::string(kJavaStart), "hearth",
                      std::string(driver_text("java_driver"))},
          .signal_again = 500ms};
}

Kit bash_kit() {
  // Each interrupt leaves one function: it is repeated quickly.
  return {.program = "bash",
          .command = {"bash", "--norc", "--noprofile", "-c",
                      fmt::format("exec 3<&0 0</dev/null\n{}", driver_text("bash_driver"))},
          .is_shell = true,
          .signal_again = 100ms};
}

std::string block_of(const Variables& sets, const std::vector<std::string>& unsets) {
  std::string block;
  for (const auto& [name, value] : sets) block += fmt::format("{}={}", name, value) + '\0';
  for (const std::string& name : unsets) block += name + '\0';
  return block;
}

bool is_shell_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

std::string normal_language(std::string_view name) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = name.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return "python";
  name = name.substr(begin, name.find_last_not_of(kSpace) - begin + 1);
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (lower == "js") return "javascript";
  if (lower == "ts") return "typescript";
  return lower;
}

Kit kit_for(const std::string& language) {
  if (language == "python") return python_kit();
  if (language == "javascript" || language == "typescript") return node_kit();
  if (language == "bash") return bash_kit();
  if (language == "java") return java_kit();
  fail(Code::invalid,
       "'{}' is not supported: there are python, javascript, typescript, bash and java", language);
}

std::string frame_of(const Cell& cell) {
  const std::string sets = block_of(cell.sets, cell.unsets);
  const std::string resets = block_of(cell.resets, cell.reset_unsets);
  std::string frame = fmt::format("run {} {} {} {} {}\n", cell.count, cell.language, sets.size(),
                                  resets.size(), cell.code.size());
  frame += sets;
  frame += resets;
  frame += cell.code;
  return frame;
}

std::string shell_quote(std::string_view text) {
  std::string quoted = "$'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else {
      quoted += c;
    }
  }
  return quoted + '\'';
}

std::string shell_line_of(const Cell& cell) {
  if (cell.code.find('\0') != std::string::npos)
    fail(Code::invalid, "the cell has a zero byte in it, which a shell cannot hold");
  std::string line = fmt::format("run {} ", cell.count);
  for (const std::string& name : cell.unsets) {
    if (is_shell_name(name)) line += fmt::format("\\builtin unset -v {}; ", name);
  }
  for (const auto& [name, value] : cell.sets) {
    if (is_shell_name(name))
      line += fmt::format("\\builtin export {}={}; ", name, shell_quote(value));
  }
  return line + "__hearth_code=" + shell_quote(cell.code) + '\n';
}

}  // namespace hearth::interpreter
