// A command line taken apart into words, by the rules that the clients of this API count on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtimeapi {

// The shell's quoting and nothing else of it, exactly as Python's shlex.split does it: words end at
// spaces, tabs and ends of lines; in single quotes everything stands for itself; in double quotes a
// backslash hides '"' and '\' only; elsewhere it hides whatever follows, a newline too. '#', '$',
// '|' and the like are ordinary characters. Throws Error(invalid) for a quote that is not closed
// and for a backslash at the end.
std::vector<std::string> split_shell_words(std::string_view line);

}  // namespace hearth::runtimeapi
