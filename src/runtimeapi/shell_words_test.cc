#include "runtimeapi/shell_words.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::runtimeapi {
namespace {

using Words = std::vector<std::string>;

TEST(ShellWords, EndAtWhitespace) {
  EXPECT_EQ(split_shell_words("echo  hello\tyou\r\nthere "),
            (Words{"echo", "hello", "you", "there"}));
  EXPECT_EQ(split_shell_words(""), Words{});
  EXPECT_EQ(split_shell_words(" \n"), Words{});
  EXPECT_EQ(split_shell_words("a\vb"), (Words{"a\vb"}));
}

TEST(ShellWords, KeepWhatIsQuoted) {
  EXPECT_EQ(split_shell_words("echo 'hello world'"), (Words{"echo", "hello world"}));
  EXPECT_EQ(split_shell_words("sh -c \"a 'b' c\""), (Words{"sh", "-c", "a 'b' c"}));
  EXPECT_EQ(split_shell_words("a''b \"\" ''"), (Words{"ab", "", ""}));
  EXPECT_EQ(split_shell_words("x='a b'\"c d\"e"), (Words{"x=a bc de"}));
  EXPECT_EQ(split_shell_words("'a\\'"), (Words{"a\\"}));
}

TEST(ShellWords, UndoBackslashes) {
  EXPECT_EQ(split_shell_words(R"(a\ b \" \')"), (Words{"a b", "\"", "'"}));
  EXPECT_EQ(split_shell_words(R"("a\x\"\\")"), (Words{R"(a\x"\)"}));
  EXPECT_EQ(split_shell_words("a\\\nb"), (Words{"a\nb"}));
  EXPECT_EQ(split_shell_words("\"a\\\nb\""), (Words{"a\\\nb"}));
}

TEST(ShellWords, AreNoShell) {
  EXPECT_EQ(split_shell_words("a | b && $C > d; #e f#g"),
            (Words{"a", "|", "b", "&&", "$C", ">", "d;", "#e", "f#g"}));
}

TEST(ShellWords, RefuseWhatIsNotClosed) {
  for (const char* line : {"'", "a 'b", "\"", "\"a\\\"", "a\\", "\"a\\"})
    EXPECT_THROW(split_shell_words(line), Error) << line;
}

}  // namespace
}  // namespace hearth::runtimeapi
