// What each verb is for, in one line and with examples: the words of `hearth --help`.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hearth::cli {

struct VerbHelp {
  std::string_view name;
  std::string_view summary;
  std::string_view usage;   // what follows the verb
  std::string_view footer;  // examples, and what else there is to know
};

// In the order of a newcomer's first hour.
std::span<const VerbHelp> all_verbs();

// An alias is known by the verb it stands for. Null for a word that is no verb.
const VerbHelp* find_verb_help(std::string_view name);

// `hearth --help`.
std::string overview();

// Of "image pull" and the others; null for what is none. find_verb_help() knows them too.
const VerbHelp* find_image_verb_help(std::string_view name);

// `hearth image --help`.
std::string image_overview();

// Of "pool create" and its like; null for what is none. find_verb_help() knows them too.
const VerbHelp* find_kube_verb_help(std::string_view name);

// `hearth pool --help`, `hearth team --help` and so on.
std::string group_overview(std::string_view group);

// "there is no verb 'ruin'; did you mean 'run'?"
std::string describe_unknown_verb(std::string_view word);

}  // namespace hearth::cli
