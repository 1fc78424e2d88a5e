// hearth-bench: Hearth beside its peers, in one interleaved run.
//
// Threads: the main thread measures; where several workers are measured, each is a thread.
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/page.h"

namespace {

using namespace hearth;
using namespace hearth::bench;

constexpr const char* kUsage =
    "usage: hearth-bench [PAGE] [OPTIONS]\n"
    "\n"
    "Measures Hearth beside bubblewrap, crun, runc and plain fork+exec in one interleaved run,\n"
    "shows the figures with their ratios, and which goals they reach. Needs root; takes three\n"
    "minutes (page guest: one; page kube, beside etcd: two, without root; page claims, page e2b:\n"
    "two); leaves nothing behind.\n"
    "A peer that is not installed is reported as skipped. The quieter the machine, the better.\n"
    "  PAGE         what to measure [runtime]\n"
    "  --json FILE  also write the figures to FILE, as an array of rows\n"
    "  --rounds N   turns that each gets in each case, 1 to 10000 [100]\n"
    "  --only CASE  one case, and its variant with gaps\n"
    "  --long       go on for ten minutes with create, exec, destroy: does anything grow?\n"
    "  --many N     also keep N sandboxes alive at once, 1 to 30000: what do they take?\n"
    "  --list       print the pages, their cases and who takes part\n"
    "  --help       print this\n"
    "  --version    print the version\n";

constexpr unsigned kDefaultRounds = 100;
constexpr unsigned kMostRounds = 10'000;
constexpr unsigned kMostSandboxes = 30'000;

struct Options {
  std::string page;
  std::string json;
  PageOptions how = {.rounds = kDefaultRounds};
  bool list = false;
  bool help = false;
  bool version = false;
};

unsigned parse_number(const std::string& option, const std::string& text, unsigned most) {
  const bool digits = !text.empty() && text.size() <= 5 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  const unsigned value = digits ? static_cast<unsigned>(std::stoul(text)) : 0;
  if (value == 0 || value > most)
    fail(Code::invalid, "{} wants a number from 1 to {}, not '{}'", option, most, text);
  return value;
}

Options parse_options(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 >= words.size()) fail(Code::invalid, "{} needs a value", word);
      return words[++i];
    };
    if (word == "--json")
      options.json = value();
    else if (word == "--rounds")
      options.how.rounds = parse_number(word, value(), kMostRounds);
    else if (word == "--only")
      options.how.only = value();
    else if (word == "--long")
      options.how.long_run = true;
    else if (word == "--many")
      options.how.many = parse_number(word, value(), kMostSandboxes);
    else if (word == "--list")
      options.list = true;
    else if (word == "--help" || word == "-h")
      options.help = true;
    else if (word == "--version")
      options.version = true;
    else if (word.starts_with('-'))
      fail(Code::invalid, "there is no option '{}'; see --help", word);
    else if (!options.page.empty())
      fail(Code::invalid, "one page at a time: '{}' or '{}'", options.page, word);
    else
      options.page = word;
  }
  return options;
}

const Page& find_page(const std::string& name) {
  if (name.empty()) return all_pages().front();
  std::string known;
  for (const Page& page : all_pages()) {
    if (page.name == name) return page;
    known += fmt::format(" {}", page.name);
  }
  fail(Code::not_found, "there is no page '{}'; there is:{}", name, known);
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void write_json(const std::string& path, const std::vector<Row>& rows) {
  std::ofstream file(path);
  file << to_json(rows);
  file.close();
  if (!file) fail(Code::internal, "write '{}'", path);
}

void list_pages() {
  for (const Page& page : all_pages())
    print(fmt::format("# {}: {}\n{}", page.name, page.title, page.list()));
}

int run(const Options& options) {
  if (options.help) return print(kUsage), 0;
  if (options.version) return print("hearth-bench " HEARTH_VERSION "\n"), 0;
  if (options.list) return list_pages(), 0;
  const Page& page = find_page(options.page);
  // Tried before the work, not after it.
  if (!options.json.empty()) write_json(options.json, {});

  print(fmt::format("page {}: {}\n\n", page.name, page.title));
  const Results results = page.run(options.how);
  print(format_tables(results.rows, "hearth"));
  if (!results.skips.empty()) print("\n" + format_skips(results.skips));
  if (options.how.only.empty()) print("\n" + format_goals(page.goals(), results.rows));
  print(fmt::format("\nat the end: {}\n", describe_load()));
  if (!options.json.empty()) write_json(options.json, results.rows);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kExitUsage = 2;
  constexpr int kExitInterrupted = 130;
  try {
    const Options options = parse_options({argv + 1, argv + argc});
    catch_interrupts();
    return run(options);
  } catch (const Interrupted&) {
    std::fputs("hearth-bench: interrupted; everything is cleaned up\n", stderr);
    return kExitInterrupted;
  } catch (const Error& error) {
    std::fprintf(stderr, "hearth-bench: %s\n", error.what());
    return error.code() == Code::invalid ? kExitUsage : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hearth-bench: %s\n", error.what());
    return 1;
  }
}
