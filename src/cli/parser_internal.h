// One verb's words -> options and the rest.
//
// Only its source sees CLI11, which takes 20 seconds to compile. Each verb is a parser of its own,
// not a CLI11 subcommand: those would take words of the sandboxed command (`hearth run env`) for
// verbs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command_line.h"
#include "cli/help.h"
#include "cli/state_dir.h"

namespace CLI {
class App;
}

namespace hearth::cli {

// Thrown by parse() when --help was asked for; caught in parse_order().
struct HelpWanted {
  std::string text;
};

// One verb's options. Values stay text here: our own errors say more than the library's.
class Parser {
 public:
  explicit Parser(const CommandLine& line);
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  ~Parser();

  void flag(const std::string& names, bool& value, const std::string& text);
  // "--x" is "true", "--x=VALUE" is VALUE; the next word is never its value.
  void toggle(const std::string& names, std::string& value, const std::string& text);
  void option(const std::string& names, std::string& value, const std::string& type,
              const std::string& text);
  void options(const std::string& names, std::vector<std::string>& values, const std::string& type,
               const std::string& text);
  void format(bool with_id = false);

  // Words that are neither options nor their values.
  std::vector<std::string> parse();

  // The first `own` words are the verb's; what follows them, or "--", is a command with options of
  // its own.
  std::vector<std::string> parse_with_command(std::size_t own);

  std::string state_dir() const { return find_state_dir(state_dir_); }
  Format output() const;
  void refuse_words(const std::vector<std::string>& words) const;

 private:
  std::vector<std::string> parse_words(std::vector<std::string> words);
  std::vector<std::string>::const_iterator find_command(std::size_t own) const;
  bool takes_next_word(const std::string& word) const;

  const VerbHelp& verb_;
  std::vector<std::string> words_;
  std::string state_dir_;
  std::string format_;
  bool with_id_ = false;
  std::unique_ptr<CLI::App> app_;
};

// Of the verbs of `hearth image`.
Order parse_image(const CommandLine& line);

}  // namespace hearth::cli
