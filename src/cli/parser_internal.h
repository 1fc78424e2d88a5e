// One verb's words -> options and the rest.
//
// The only header that sees CLI11, which costs seconds to compile. Each verb is a parser of its
// own, not a CLI11 subcommand: those would take words of the sandboxed command (`hearth run env`)
// for verbs.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/command_line.h"
#include "cli/help.h"
#include "cli/state_dir.h"

namespace hearth::cli {

// Thrown by parse() when --help was asked for; caught in parse_order().
struct HelpWanted {
  std::string text;
};

class HelpFormat final : public CLI::Formatter {
 public:
  explicit HelpFormat(const VerbHelp& verb) : verb_(verb) { column_width(26); }

  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return fmt::format("\nusage: hearth {} {}\n", verb_.name, verb_.usage);
  }

 private:
  const VerbHelp& verb_;
};

// One verb's options. Values stay text here: our own errors say more than the library's.
class Parser {
 public:
  explicit Parser(const CommandLine& line) : verb_(*find_verb_help(line.verb)), words_(line.rest) {
    state_dir_ = line.state_dir;
    app_.description(std::string(verb_.summary));
    app_.footer(std::string(verb_.footer));
    app_.formatter(std::make_shared<HelpFormat>(verb_));
    app_.set_help_flag("-h,--help", "print this");
    app_.add_option("--state-dir", state_dir_, "where the engine keeps its things")
        ->type_name("DIR");
  }

  void flag(const std::string& names, bool& value, const std::string& text) {
    app_.add_flag(names, value, text);
  }
  void option(const std::string& names, std::string& value, const std::string& type,
              const std::string& text) {
    app_.add_option(names, value, text)->type_name(type);
  }
  void options(const std::string& names, std::vector<std::string>& values, const std::string& type,
               const std::string& text) {
    app_.add_option(names, values, text)->type_name(type)->allow_extra_args(false);
  }
  void format(bool with_id = false) {
    option("-o,--output", format_, "FORMAT", with_id ? "table, json or id" : "table or json");
    with_id_ = with_id;
  }

  // Words that are neither options nor their values.
  std::vector<std::string> parse() {
    std::vector<std::string> words = words_;
    const auto dashes = std::ranges::find(words, "--");
    const std::vector<std::string> after(dashes == words.end() ? dashes : dashes + 1, words.end());
    words.erase(dashes, words.end());
    std::vector<std::string> positional = parse_words(std::move(words));
    positional.insert(positional.end(), after.begin(), after.end());
    return positional;
  }

  // The first `own` words are the verb's; what follows them, or "--", is a command with options of
  // its own.
  std::vector<std::string> parse_with_command(std::size_t own) {
    const auto end = find_command(own);
    std::vector<std::string> command(end, words_.cend());
    std::vector<std::string> mine(words_.cbegin(), end);
    if (!command.empty() && command.front() == "--") command.erase(command.begin());
    std::vector<std::string> positional = parse_words(std::move(mine));
    positional.insert(positional.end(), command.begin(), command.end());
    return positional;
  }

  std::string state_dir() const { return find_state_dir(state_dir_); }
  Format output() const {
    if (format_ == "table" || format_.empty()) return Format::table;
    if (format_ == "json") return Format::json;
    if (format_ == "id" && with_id_) return Format::id;
    fail(Code::invalid, "-o: there is no output '{}'; there are table{} json", format_,
         with_id_ ? ", id and" : " and");
  }
  void refuse_words(const std::vector<std::string>& words) const {
    if (!words.empty())
      fail(Code::invalid, "'{}' is one word too many; see 'hearth {} --help'", words.front(),
           verb_.name);
  }

 private:
  std::vector<std::string> parse_words(std::vector<std::string> words) {
    app_.allow_extras();
    std::ranges::reverse(words);  // as the library wants it
    try {
      app_.parse(std::move(words));
    } catch (const CLI::CallForHelp&) {
      throw HelpWanted{app_.help()};
    } catch (const CLI::ParseError& error) {
      fail(Code::invalid, "{}; see 'hearth {} --help'", error.what(), verb_.name);
    }
    std::vector<std::string> extras = app_.remaining();
    const auto unknown = std::ranges::find_if(
        extras, [](const std::string& word) { return word.starts_with('-') && word.size() > 1; });
    if (unknown != extras.end()) {
      fail(Code::invalid, "there is no option '{}'; see 'hearth {} --help'", *unknown, verb_.name);
    }
    return extras;
  }

  // Where the command begins: behind "--", or behind `own` words that are no options.
  std::vector<std::string>::const_iterator find_command(std::size_t own) const {
    std::size_t seen = 0;
    for (auto word = words_.begin(); word != words_.end(); ++word) {
      if (*word == "--") return word;
      if (!word->starts_with('-') || word->size() == 1) {
        if (seen++ == own) return word;
      } else if (takes_next_word(*word) && std::next(word) != words_.end()) {
        ++word;
      }
    }
    return words_.end();
  }

  // "--memory" and "-e" do, "--memory=1g" and "-eA=b" and "-it" do not; the last of "-ite" does.
  bool takes_next_word(const std::string& word) const {
    const auto takes_value = [&](const std::string& name) {
      const CLI::Option* option = app_.get_option_no_throw(name);
      return option != nullptr && option->get_expected_min() > 0;
    };
    if (word.starts_with("--")) return takes_value(word);
    for (std::size_t i = 1; i < word.size(); ++i) {
      if (takes_value(std::string("-") + word[i])) return i + 1 == word.size();
    }
    return false;
  }

  const VerbHelp& verb_;
  std::vector<std::string> words_;
  std::string state_dir_;
  std::string format_;
  bool with_id_ = false;
  CLI::App app_;
};

// Of the verbs of `hearth image`.
Order parse_image(const CommandLine& line);

}  // namespace hearth::cli
