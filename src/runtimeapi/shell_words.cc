#include "runtimeapi/shell_words.h"

#include <optional>
#include <utility>

#include "base/error.h"

namespace hearth::runtimeapi {
namespace {

class Splitter {
 public:
  explicit Splitter(std::string_view line) : rest_(line) {}

  std::vector<std::string> run() {
    while (!rest_.empty()) {
      const char c = take();
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        end_word();
      } else if (c == '\'') {
        take_single_quoted();
      } else if (c == '"') {
        take_double_quoted();
      } else {
        word() += c == '\\' ? take_escaped() : c;
      }
    }
    end_word();
    return std::move(words_);
  }

 private:
  char take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  char take_escaped() {
    if (rest_.empty()) fail(Code::invalid, "No escaped character");
    return take();
  }

  void take_single_quoted() {
    const auto end = rest_.find('\'');
    if (end == std::string_view::npos) fail(Code::invalid, "No closing quotation");
    word() += rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
  }

  void take_double_quoted() {
    word();
    while (!rest_.empty()) {
      const char c = take();
      if (c == '"') return;
      if (c != '\\') {
        word() += c;
        continue;
      }
      const char escaped = take_escaped();
      if (escaped != '"' && escaped != '\\') word() += '\\';
      word() += escaped;
    }
    fail(Code::invalid, "No closing quotation");
  }

  // The present one; begun if there is none: an empty pair of quotes is a word too.
  std::string& word() {
    if (!word_) word_.emplace();
    return *word_;
  }

  void end_word() {
    if (word_) words_.push_back(*std::exchange(word_, std::nullopt));
  }

  std::string_view rest_;
  std::optional<std::string> word_;
  std::vector<std::string> words_;
};

}  // namespace

std::vector<std::string> split_shell_words(std::string_view line) {
  return Splitter(line).run();
}

}  // namespace hearth::runtimeapi
