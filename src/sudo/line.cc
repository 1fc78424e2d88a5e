#include "sudo/line.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/error.h"

namespace hearth::sudo {
namespace {

// With a letter, a name, or both.
struct Option {
  char letter;
  std::string_view name;
  enum class Value : std::uint8_t { none, needed, optional } value = Value::none;
};
using Value = Option::Value;

constexpr std::array<Option, 20> kOptions = {{
    {'A', "askpass"},
    {'b', "background"},
    {'D', "chdir", Value::needed},
    {'E', "preserve-env", Value::optional},
    {'g', "group", Value::needed},
    {'H', "set-home"},
    {'h', "help"},
    {'i', "login"},
    {'K', "remove-timestamp"},
    {'k', "reset-timestamp"},
    {'l', "list"},
    {'n', "non-interactive"},
    {'P', "preserve-groups"},
    {'p', "prompt", Value::needed},
    {'S', "stdin"},
    {'s', "shell"},
    {'u', "user", Value::needed},
    {'V', "version"},
    {'v', "validate"},
    {'B', "bell"},
}};

bool is_name_start(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos || !is_name_start(word.front())) return false;
  return std::ranges::all_of(word.substr(0, equals),
                             [](char c) { return is_name_start(c) || is_digit(c); });
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) parts.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return parts;
}

class Parser {
 public:
  explicit Parser(std::span<const std::string_view> words) : words_(words) {}

  Line parse() {
    while (!words_.empty() && words_.front().starts_with('-') && words_.front() != "-") {
      const std::string_view word = take();
      if (word == "--") break;
      if (word.starts_with("--"))
        take_long(word.substr(2));
      else
        take_letters(word.substr(1));
    }
    while (!words_.empty() && is_assignment(words_.front())) line_.assignments.emplace_back(take());
    line_.command.assign(words_.begin(), words_.end());
    return finish();
  }

 private:
  std::string_view take() {
    const std::string_view word = words_.front();
    words_ = words_.subspan(1);
    return word;
  }

  std::string_view take_value(std::string_view option) {
    if (words_.empty()) fail(Code::invalid, "option '{}' needs a value", option);
    return take();
  }

  void take_long(std::string_view word) {
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const auto known = std::ranges::find(kOptions, name, &Option::name);
    if (known == kOptions.end()) fail(Code::invalid, "option '--{}' is not offered here", name);
    std::optional<std::string_view> value;
    if (equals != std::string_view::npos) value = word.substr(equals + 1);
    if (value && known->value == Value::none)
      fail(Code::invalid, "option '--{}' takes no value", name);
    if (!value && known->value == Value::needed) value = take_value(name);
    apply(known->letter, value);
  }

  // "-nEu root", "-uroot".
  void take_letters(std::string_view letters) {
    while (!letters.empty()) {
      const char letter = letters.front();
      letters.remove_prefix(1);
      const auto known = std::ranges::find(kOptions, letter, &Option::letter);
      if (known == kOptions.end()) fail(Code::invalid, "option '-{}' is not offered here", letter);
      if (known->value != Value::needed) {
        apply(letter, std::nullopt);
        continue;
      }
      apply(letter, letters.empty() ? take_value(std::string_view(&known->letter, 1)) : letters);
      return;
    }
  }

  void set_mode(Mode mode) {
    // "-ll" is more of the same; help and version are answered whatever else is there.
    const bool asks = line_.mode == Mode::help || line_.mode == Mode::version;
    if (asks || line_.mode == mode) return;
    if (line_.mode != Mode::run && mode != Mode::help && mode != Mode::version)
      fail(Code::invalid, "only one of -i, -l, -s and -v can be used");
    line_.mode = mode;
  }

  void apply(char letter, std::optional<std::string_view> value) {
    switch (letter) {
      case 'b':
        line_.background = true;
        return;
      case 'D':
        line_.directory = *value;
        return;
      case 'E':
        if (value)
          std::ranges::copy(split(*value), std::back_inserter(line_.kept));
        else
          line_.keep_all = true;
        return;
      case 'g':
        line_.group = *value;
        return;
      case 'H':
        line_.set_home = true;
        return;
      case 'h':
        return set_mode(Mode::help);
      case 'i':
        return set_mode(Mode::login);
      case 'K':
      case 'k':
        resets_ = true;
        return;
      case 'l':
        return set_mode(Mode::list);
      case 's':
        return set_mode(Mode::shell);
      case 'u':
        line_.user = *value;
        return;
      case 'V':
        return set_mode(Mode::version);
      case 'v':
        return set_mode(Mode::check);
      default:
        return;  // about passwords, or what is so anyway
    }
  }

  Line finish() {
    if (line_.mode == Mode::run && line_.command.empty() && resets_) line_.mode = Mode::reset;
    if (line_.mode == Mode::run && line_.command.empty())
      fail(Code::invalid, "no command was given");
    if (line_.mode == Mode::check && !line_.command.empty())
      fail(Code::invalid, "-v takes no command");
    if (line_.background && line_.command.empty()) fail(Code::invalid, "-b needs a command");
    return std::move(line_);
  }

  std::span<const std::string_view> words_;
  Line line_;
  bool resets_ = false;
};

// "#1000" is how sudo is told of a number.
std::string_view without_hash(std::string_view id) {
  if (id.starts_with('#')) id.remove_prefix(1);
  return id;
}

std::string_view find_variable(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string_view entry : environment) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return {};
}

// As one word for a shell's -c: everything that might mean something to it is escaped.
std::string as_script(const std::vector<std::string>& command) {
  std::string script;
  for (const std::string& word : command) {
    if (!script.empty()) script += ' ';
    for (const char c : word) {
      if (!is_name_start(c) && !is_digit(c) && c != '-' && c != '$') script += '\\';
      script += c;
    }
  }
  return script;
}

// What reaches a command from the caller without being asked for: how it shows things.
bool is_kept(std::string_view name) {
  constexpr std::array<std::string_view, 16> kKept = {"COLORS",
                                                      "COLORTERM",
                                                      "DISPLAY",
                                                      "HOSTNAME",
                                                      "KRB5CCNAME",
                                                      "LANG",
                                                      "LANGUAGE",
                                                      "LINGUAS",
                                                      "LS_COLORS",
                                                      "PS1",
                                                      "PS2",
                                                      "TERM",
                                                      "TZ",
                                                      "XAUTHORITY",
                                                      "XAUTHORIZATION",
                                                      "XDG_CURRENT_DESKTOP"};
  return name.starts_with("LC_") || std::ranges::find(kKept, name) != kKept.end();
}

// Real ones are cut off there, too.
constexpr std::size_t kMostCommandText = 4096;

}  // namespace

const std::string_view kUsage =
    "usage: sudo [-bEHnS] [-D folder] [-g group] [-u user] [VAR=value] [-i | -s] [command "
    "[arg ...]]\n"
    "       sudo -h | -V | -k | -K | -v | -l [command]\n";

Line parse_line(std::span<const std::string_view> words) {
  return Parser(words).parse();
}

std::string target_of(const Line& line, const Caller& caller) {
  std::string user(without_hash(line.user));
  if (user.empty()) user = line.group.empty() ? "root" : std::to_string(caller.uid);
  if (user.find(':') != std::string::npos) fail(Code::invalid, "there is no user '{}'", user);
  if (line.group.empty()) return user;
  return fmt::format("{}:{}", user, without_hash(line.group));
}

std::vector<std::string> command_of(const Line& line, const Caller& caller,
                                    const guest::User& target) {
  if (line.mode != Mode::login && line.mode != Mode::shell) return line.command;
  std::string shell = target.shell;
  if (line.mode == Mode::shell) {
    const std::string_view chosen = find_variable(caller.environment, "SHELL");
    if (!chosen.empty()) shell = chosen;
  }
  std::vector<std::string> command{shell};
  if (line.mode == Mode::login) command.emplace_back("-l");
  if (!line.command.empty()) {
    command.emplace_back("-c");
    command.push_back(as_script(line.command));
  }
  return command;
}

std::vector<std::string> environment_of(const Line& line, const Caller& caller,
                                        const guest::User& target, const std::string& program,
                                        const std::vector<std::string>& command) {
  const bool keeps_all = line.keep_all && line.mode != Mode::login;
  std::map<std::string, std::string, std::less<>> merged;
  const auto add = [&](std::string_view entry) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string_view::npos) return;
    merged[std::string(entry.substr(0, equals))] = entry.substr(equals + 1);
  };
  for (const std::string_view entry : caller.environment) {
    const std::string_view name = entry.substr(0, entry.find('='));
    if (keeps_all || is_kept(name) || std::ranges::find(line.kept, name) != line.kept.end())
      add(entry);
  }
  const auto set = [&](std::string_view name, std::string value, bool unless_kept) {
    const bool was_asked_for = keeps_all || std::ranges::find(line.kept, name) != line.kept.end();
    if (unless_kept && was_asked_for && merged.contains(name)) return;
    merged[std::string(name)] = std::move(value);
  };
  const std::string name = target.name.empty() ? std::to_string(target.uid) : target.name;
  set("HOME", target.home, !line.set_home);
  set("SHELL", target.shell, true);
  set("MAIL", "/var/mail/" + name, true);
  set("USER", name, false);
  set("LOGNAME", name, false);
  set("PATH", std::string(kSecurePath), false);
  for (const std::string& assignment : line.assignments) add(assignment);
  std::string text = program;
  for (std::size_t i = 1; i < command.size(); ++i) text += ' ' + command[i];
  set("SUDO_COMMAND", text.substr(0, kMostCommandText), false);
  set("SUDO_USER", caller.name, false);
  set("SUDO_UID", std::to_string(caller.uid), false);
  set("SUDO_GID", std::to_string(caller.gid), false);
  std::vector<std::string> environment;
  for (const auto& [key, value] : merged) environment.push_back(key + '=' + value);
  return environment;
}

}  // namespace hearth::sudo
