// RFC 9110 section 11.2. The grammar is ambiguous to look at, since commas separate both challenges
// and their parameters: a word that is followed by '=' is a parameter, any other one begins a
// challenge.
#include "registry/challenge.h"

#include <algorithm>
#include <optional>

namespace hearth::registry {
namespace {

constexpr std::size_t kMaxHeader = 16 << 10;
constexpr std::size_t kMaxChallenges = 8;
constexpr std::size_t kMaxParameters = 16;

bool is_token_character(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~/";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kOthers.find(c) != std::string_view::npos;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  void skip(std::string_view characters) {
    const std::size_t end = rest_.find_first_not_of(characters);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end);
  }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view token() {
    const auto end = std::ranges::find_if_not(rest_, is_token_character);
    const auto word = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(word.size());
    return word;
  }
  // Behind the opening quote. Nothing if it does not end.
  std::optional<std::string> quoted() {
    std::string value;
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return value;
      if (c != '\\') {
        value += c;
      } else if (!rest_.empty()) {
        value += rest_.front();
        rest_.remove_prefix(1);
      }
    }
    return std::nullopt;
  }
  bool is_done() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace

std::vector<Challenge> parse_challenges(std::string_view header) {
  std::vector<Challenge> challenges;
  if (header.size() > kMaxHeader) return challenges;
  Scanner scanner(header);
  while (true) {
    scanner.skip(" \t,");
    if (scanner.is_done()) return challenges;
    const std::string word = lower(scanner.token());
    if (word.empty()) return challenges;
    scanner.skip(" \t");
    if (!scanner.take('=')) {
      if (challenges.size() == kMaxChallenges) return challenges;
      challenges.push_back({.scheme = word});
      continue;
    }
    scanner.skip(" \t");
    std::optional<std::string> value =
        scanner.take('"') ? scanner.quoted() : std::string(scanner.token());
    if (!value || challenges.empty()) return challenges;
    auto& parameters = challenges.back().parameters;
    if (parameters.size() < kMaxParameters) parameters.emplace(word, *std::move(value));
  }
}

}  // namespace hearth::registry
