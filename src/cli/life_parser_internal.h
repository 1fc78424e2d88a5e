// The words of the verbs in life.h, and what `run` has in common with them.
#pragma once

#include <string>

#include "cli/parser_internal.h"
#include "cli/sandbox_options.h"

namespace hearth::cli {

// The options that say whom a sandbox may talk to.
class NetworkParser {
 public:
  // `mode_flag` is what the mode is called there.
  NetworkParser(Parser& parser, const std::string& mode_flag, const std::string& mode_text)
      : mode_flag_(mode_flag) {
    parser.option(mode_flag, words_.mode, "MODE", mode_text);
    parser.options("--allow", words_.allow, "RULE",
                   "let it connect there, such as 1.1.1.1:443/tcp; may be repeated");
    parser.options("--deny", words_.deny, "RULE", "refuse it; --allow wins; may be repeated");
    parser.options("--open", words_.open, "RULE",
                   "let it connect even to this host or a sandbox; may be repeated");
    parser.flag("--no-dns", words_.no_dns, "no name server");
  }

  NetworkOptions finish() const { return parse_network(mode_flag_, words_); }

 private:
  std::string mode_flag_;
  NetworkWords words_;
};

// What is kept of the output of detached commands.
class LogParser {
 public:
  explicit LogParser(Parser& parser) {
    parser.option("--log-size", size_, "SIZE", "with -d: of one file of its log on disk [10m]");
    parser.option("--log-files", files_, "N",
                  "with -d: files of its log [3]; 0 keeps the newest 256 KiB in memory");
  }

  runtime::LogLimits finish() const;

 private:
  std::string size_, files_;
};

Order parse_up(const CommandLine& line);
Order parse_logs(const CommandLine& line);
Order parse_attach(const CommandLine& line);
Order parse_pause(const CommandLine& line);
Order parse_resume(const CommandLine& line);
Order parse_stop(const CommandLine& line);
Order parse_commit(const CommandLine& line);
Order parse_fork(const CommandLine& line);
Order parse_policy(const CommandLine& line);
Order parse_forward(const CommandLine& line);
Order parse_ports(const CommandLine& line);
Order parse_configure(const CommandLine& line);
Order parse_stats(const CommandLine& line);
Order parse_volumes(const CommandLine& line);

// Of the verbs in kube.h.
Order parse_apiserver(const CommandLine& line);
Order parse_kubectl(const CommandLine& line);
Order parse_backup(const CommandLine& line);
Order parse_restore(const CommandLine& line);
Order parse_controller(const CommandLine& line);
Order parse_crds(const CommandLine& line);

// Of the verbs in kube_verbs.h.
Order parse_get(const CommandLine& line);
Order parse_describe(const CommandLine& line);
Order parse_claim(const CommandLine& line);
Order parse_pool(const CommandLine& line);
Order parse_template(const CommandLine& line);

// Of the verbs in tenant_verbs.h.
Order parse_team(const CommandLine& line);
Order parse_key(const CommandLine& line);

}  // namespace hearth::cli
