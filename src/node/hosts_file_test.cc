#include "node/hosts_file.h"

#include <gtest/gtest.h>

namespace hearth::node {
namespace {

constexpr std::string_view kBeginning =
    "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"
    "::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n"
    "fe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";

std::string hosts(std::string_view pod) {
  const std::string text = hosts_file_of(model::parse_json(pod).value, "cluster.local");
  EXPECT_TRUE(text.starts_with(kBeginning)) << text;
  return text.substr(std::min(text.size(), kBeginning.size()));
}

TEST(HostsFile, NamesThePod) {
  EXPECT_EQ(hosts(R"({"metadata":{"namespace":"n"},"spec":{}})"), "%ADDRESS%\t%HOSTNAME%\n");
  EXPECT_EQ(hosts(R"({"metadata":{"namespace":"n"},"spec":{"subdomain":"sub"}})"),
            "%ADDRESS%\t%HOSTNAME%.sub.n.svc.cluster.local\t%HOSTNAME%\n");
}

TEST(HostsFile, HasTheAliasesLast) {
  EXPECT_EQ(hosts(R"({"metadata":{"namespace":"n"},"spec":{"hostAliases":[
                {"ip":"1.2.3.4","hostnames":["a.local","b.local"]},{"ip":"5.6.7.8"}]}})"),
            "%ADDRESS%\t%HOSTNAME%\n\n# Entries added by HostAliases.\n"
            "1.2.3.4\ta.local\tb.local\n5.6.7.8\n");
}

}  // namespace
}  // namespace hearth::node
