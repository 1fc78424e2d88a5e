#include "node/hosts_file.h"

#include <fmt/format.h>

#include "model/meta.h"
#include "runtime/spec.h"

namespace hearth::node {
namespace {

using model::text_at;

constexpr std::string_view kBeginning =
    "# Kubernetes-managed hosts file.\n"
    "127.0.0.1\tlocalhost\n"
    "::1\tlocalhost ip6-localhost ip6-loopback\n"
    "fe00::0\tip6-localnet\n"
    "fe00::0\tip6-mcastprefix\n"
    "fe00::1\tip6-allnodes\n"
    "fe00::2\tip6-allrouters\n";

std::string aliases_of(const model::Json& pod) {
  const auto* aliases = model::array_at(pod, {"spec", "hostAliases"});
  if (aliases == nullptr || aliases->empty()) return {};
  std::string text = "\n# Entries added by HostAliases.\n";
  for (const model::Json& alias : *aliases) {
    text += text_at(alias, {"ip"});
    if (const auto* names = model::array_at(alias, {"hostnames"}))
      for (const model::Json& name : *names)
        if (name.is_string()) text.append("\t").append(std::string_view(name.get_string()));
    text += '\n';
  }
  return text;
}

}  // namespace

std::string hosts_file_of(const model::Json& pod, std::string_view domain) {
  std::string text(kBeginning);
  text.append(runtime::kAddressMark).append("\t");
  if (const std::string_view subdomain = text_at(pod, {"spec", "subdomain"}); !subdomain.empty())
    text += fmt::format("{}.{}.{}.svc.{}\t", runtime::kHostnameMark, subdomain,
                        model::namespace_of(pod), domain);
  text.append(runtime::kHostnameMark).append("\n");
  return text + aliases_of(pod);
}

}  // namespace hearth::node
