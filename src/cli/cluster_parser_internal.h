// What verbs that speak to a cluster have in common on the command line.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/kube_verbs.h"
#include "cli/parser_internal.h"

namespace hearth::cli {

// Which cluster, and which namespace of it.
class ClusterParser {
 public:
  explicit ClusterParser(Parser& parser, bool has_namespace = true) : parser_(parser) {
    if (has_namespace) parser.option("-n,--namespace", options_.ns, "NS", "namespace [default]");
    parser.option("--kubeconfig", options_.kubeconfig, "FILE",
                  "another cluster than the engine's: its kubeconfig");
    parser.option("--context", options_.context, "NAME",
                  "a context of it, or of KUBECONFIG or ~/.kube/config");
  }

  ClusterOptions finish() const {
    ClusterOptions options = options_;
    options.state_dir = parser_.state_dir();
    return options;
  }

 private:
  Parser& parser_;
  ClusterOptions options_;
};

inline std::string take_word(std::vector<std::string>& words, const char* question) {
  if (words.empty()) fail(Code::invalid, "{}", question);
  std::string word = words.front();
  words.erase(words.begin());
  if (word.empty()) fail(Code::invalid, "an empty word is no name; {}", question);
  return word;
}

// The words behind "pool ls", under that name.
inline CommandLine behind_action(const CommandLine& line) {
  return {.verb = line.verb + " " + line.rest.front(),
          .state_dir = line.state_dir,
          .rest = {line.rest.begin() + 1, line.rest.end()}};
}

inline bool wants_overview(const CommandLine& line) {
  return line.rest.empty() || line.rest[0] == "--help" || line.rest[0] == "-h";
}

[[noreturn]] inline void fail_no_action(const CommandLine& line) {
  fail(Code::invalid, "there is no '{}'; 'hearth {} --help' lists what there is", line.rest[0],
       line.verb);
}

}  // namespace hearth::cli
