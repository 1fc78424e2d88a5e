#include <algorithm>

#include <CLI/CLI.hpp>

#include "cli/parser_internal.h"

namespace hearth::cli {
namespace {

class HelpFormat final : public CLI::Formatter {
 public:
  explicit HelpFormat(const VerbHelp& verb) : verb_(verb) { column_width(26); }

  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return fmt::format("\nusage: hearth {} {}\n", verb_.name, verb_.usage);
  }

 private:
  const VerbHelp& verb_;
};

}  // namespace

Parser::Parser(const CommandLine& line)
    : verb_(*find_verb_help(line.verb)),
      words_(line.rest),
      state_dir_(line.state_dir),
      app_(std::make_unique<CLI::App>()) {
  app_->description(std::string(verb_.summary));
  app_->footer(std::string(verb_.footer));
  app_->formatter(std::make_shared<HelpFormat>(verb_));
  app_->set_help_flag("-h,--help", "print this");
  option("--state-dir", state_dir_, "DIR", "where the engine keeps its things");
}

Parser::~Parser() = default;

void Parser::flag(const std::string& names, bool& value, const std::string& text) {
  app_->add_flag(names, value, text);
}

void Parser::toggle(const std::string& names, std::string& value, const std::string& text) {
  app_->add_flag(names, value, text);
}

void Parser::option(const std::string& names, std::string& value, const std::string& type,
                    const std::string& text) {
  app_->add_option(names, value, text)->type_name(type);
}

void Parser::options(const std::string& names, std::vector<std::string>& values,
                     const std::string& type, const std::string& text) {
  app_->add_option(names, values, text)->type_name(type)->allow_extra_args(false);
}

void Parser::format(bool with_id) {
  option("-o,--output", format_, "FORMAT", with_id ? "table, json or id" : "table or json");
  with_id_ = with_id;
}

std::vector<std::string> Parser::parse() {
  std::vector<std::string> words = words_;
  const auto dashes = std::ranges::find(words, "--");
  const std::vector<std::string> after(dashes == words.end() ? dashes : dashes + 1, words.end());
  words.erase(dashes, words.end());
  std::vector<std::string> positional = parse_words(std::move(words));
  positional.insert(positional.end(), after.begin(), after.end());
  return positional;
}

std::vector<std::string> Parser::parse_with_command(std::size_t own) {
  const auto end = find_command(own);
  std::vector<std::string> command(end, words_.cend());
  std::vector<std::string> mine(words_.cbegin(), end);
  if (!command.empty() && command.front() == "--") command.erase(command.begin());
  std::vector<std::string> positional = parse_words(std::move(mine));
  positional.insert(positional.end(), command.begin(), command.end());
  return positional;
}

Format Parser::output() const {
  if (format_ == "table" || format_.empty()) return Format::table;
  if (format_ == "json") return Format::json;
  if (format_ == "id" && with_id_) return Format::id;
  fail(Code::invalid, "-o: there is no output '{}'; there are table{} json", format_,
       with_id_ ? ", id and" : " and");
}

void Parser::refuse_words(const std::vector<std::string>& words) const {
  if (!words.empty())
    fail(Code::invalid, "'{}' is one word too many; see 'hearth {} --help'", words.front(),
         verb_.name);
}

std::vector<std::string> Parser::parse_words(std::vector<std::string> words) {
  app_->allow_extras();
  std::ranges::reverse(words);  // as the library wants it
  try {
    app_->parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    throw HelpWanted{app_->help()};
  } catch (const CLI::ParseError& error) {
    fail(Code::invalid, "{}; see 'hearth {} --help'", error.what(), verb_.name);
  }
  std::vector<std::string> extras = app_->remaining();
  const auto unknown = std::ranges::find_if(
      extras, [](const std::string& word) { return word.starts_with('-') && word.size() > 1; });
  if (unknown != extras.end()) {
    fail(Code::invalid, "there is no option '{}'; see 'hearth {} --help'", *unknown, verb_.name);
  }
  return extras;
}

// Where the command begins: behind "--", or behind `own` words that are no options.
std::vector<std::string>::const_iterator Parser::find_command(std::size_t own) const {
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
bool Parser::takes_next_word(const std::string& word) const {
  const auto takes_value = [&](const std::string& name) {
    const CLI::Option* option = app_->get_option_no_throw(name);
    return option != nullptr && option->get_expected_min() > 0;
  };
  if (word.starts_with("--")) return takes_value(word);
  for (std::size_t i = 1; i < word.size(); ++i) {
    if (takes_value(std::string("-") + word[i])) return i + 1 == word.size();
  }
  return false;
}

}  // namespace hearth::cli
