#include "node/resolv_conf.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "model/meta.h"

namespace hearth::node {
namespace {

using model::text_at;

// What resolvers read at all.
constexpr std::size_t kMostServers = 3;
constexpr std::size_t kMostWords = 32;
constexpr std::size_t kMostLength = 255;

// Words go into a file that is read by lines.
void add_word(std::vector<std::string>& words, std::string_view word, std::size_t most) {
  const bool is_plain = !word.empty() && word.size() <= kMostLength &&
                        std::ranges::all_of(word, [](char c) { return c > ' ' && c < 127; });
  if (is_plain && words.size() < most && std::ranges::find(words, word) == words.end())
    words.emplace_back(word);
}

void add_words(std::vector<std::string>& words, const model::Json& pod, std::string_view member,
               std::size_t most) {
  if (const model::JsonArray* all = model::array_at(pod, {"spec", "dnsConfig", member}))
    for (const model::Json& word : *all)
      if (word.is_string()) add_word(words, word.get_string(), most);
}

void add_options(std::vector<std::string>& options, const model::Json& pod) {
  const model::JsonArray* all = model::array_at(pod, {"spec", "dnsConfig", "options"});
  if (!all) return;
  for (const model::Json& option : *all) {
    const std::string_view name = text_at(option, {"name"});
    const std::string_view value = text_at(option, {"value"});
    // What the pod says counts instead of what we would.
    std::erase_if(options,
                  [&](const std::string& one) { return one.substr(0, one.find(':')) == name; });
    add_word(options, value.empty() ? std::string(name) : fmt::format("{}:{}", name, value),
             kMostWords);
  }
}

}  // namespace

std::string resolv_conf_of(const model::Json& pod, std::string_view name_server,
                           std::string_view domain) {
  std::vector<std::string> servers;
  std::vector<std::string> searches;
  std::vector<std::string> options;
  const std::string_view policy = text_at(pod, {"spec", "dnsPolicy"});
  if (policy != "None") servers.emplace_back(name_server);
  if (policy != "None" && policy != "Default") {
    searches = {fmt::format("{}.svc.{}", model::namespace_of(pod), domain),
                fmt::format("svc.{}", domain), std::string(domain)};
    options = {"ndots:5"};
  }
  add_words(servers, pod, "nameservers", kMostServers);
  add_words(searches, pod, "searches", kMostWords);
  add_options(options, pod);
  std::string text;
  for (const std::string& server : servers) text += fmt::format("nameserver {}\n", server);
  if (!searches.empty()) text += fmt::format("search {}\n", fmt::join(searches, " "));
  if (!options.empty()) text += fmt::format("options {}\n", fmt::join(options, " "));
  return text;
}

}  // namespace hearth::node
