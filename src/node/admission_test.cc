#include "node/admission.h"

#include <gtest/gtest.h>

namespace hearth::node {
namespace {

model::Json pod(std::string_view spec) {
  return model::JsonObject{{"spec", model::parse_json(spec).value}};
}

std::string why(std::string_view spec) {
  const auto rejection = rejection_of(pod(spec));
  return rejection ? rejection->reason + ": " + rejection->message : "";
}

TEST(Admission, OnlySettingsThatHarmNobodyAreTaken) {
  constexpr std::string_view kSafe = R"({"securityContext":{"sysctls":[
      {"name":"net.ipv4.tcp_fin_timeout","value":"7"},
      {"name":"net/ipv4/ip_local_port_range","value":"1000 2000"}]}})";
  EXPECT_EQ(why(kSafe), "");
  EXPECT_EQ(sysctls_of(pod(kSafe)),
            (std::vector<std::string>{"net.ipv4.tcp_fin_timeout=7",
                                      "net.ipv4.ip_local_port_range=1000 2000"}));
  EXPECT_EQ(why(R"({"securityContext":{"sysctls":[{"name":"kernel.msgmax","value":"1"}]}})"),
            "SysctlForbidden: forbidden sysctl: \"kernel.msgmax\" not allowlisted");
  EXPECT_EQ(why(R"({"securityContext":{"sysctls":[{"name":"net.ipv4.ip_forward","value":"1"}]}})"),
            "SysctlForbidden: forbidden sysctl: \"net.ipv4.ip_forward\" not allowlisted");
}

TEST(Admission, ProfilesOfOnesOwnAreNotThere) {
  constexpr std::string_view kWords =
      "AppArmor: Cannot enforce AppArmor: AppArmor is not enabled on the host";
  EXPECT_EQ(why(R"({"containers":[{"securityContext":{"appArmorProfile":{"type":"Localhost"}}}]})"),
            kWords);
  EXPECT_EQ(why(R"({"securityContext":{"appArmorProfile":{"type":"Localhost"}}})"), kWords);
  EXPECT_EQ(why(R"({"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}})"), "");
}

}  // namespace
}  // namespace hearth::node
