#include "cli/otlp.h"

#include <cstdlib>
#include <initializer_list>
#include <utility>

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::cli {
namespace {

using Variables = std::initializer_list<std::pair<const char*, const char*>>;

OtlpTarget target_with(Variables variables) {
  for (const char* name : {"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                           "OTEL_EXPORTER_OTLP_INSECURE"})
    ::unsetenv(name);
  for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  return find_otlp_target();
}

std::string text_of(const OtlpTarget& target) {
  return std::string(target.is_tls ? "https " : "http ") + target.host + " " +
         std::to_string(target.port) + " " + target.path;
}

TEST(Otlp, TheEnvironmentSaysWhere) {
  EXPECT_EQ(text_of(target_with({})), "http localhost 4318 /v1/traces");
  EXPECT_EQ(text_of(target_with({{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://otel.example:9/x/"}})),
            "https otel.example 9 /x/v1/traces");
  EXPECT_EQ(text_of(target_with({{"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"},
                                 {"OTEL_EXPORTER_OTLP_INSECURE", "true"}})),
            "http collector 4318 /v1/traces");
  EXPECT_EQ(text_of(target_with({{"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"}})),
            "https collector 4318 /v1/traces");
  EXPECT_EQ(text_of(target_with({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://never:1"},
                                 {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://there:2/in"}})),
            "http there 2 /in");
}

TEST(Otlp, HeadersComeAlong) {
  const auto headers_with = [](const char* shared, const char* own) {
    ::setenv("OTEL_EXPORTER_OTLP_HEADERS", shared, 1);
    ::setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", own, 1);
    std::string text;
    for (const auto& [name, value] : find_otlp_headers()) text += name + ": " + value + "\n";
    return text;
  };
  EXPECT_EQ(headers_with("", ""), "");
  EXPECT_EQ(headers_with("api-key=se=cret, x-tenant = a%20b%2C ,", ""),
            "api-key: se=cret\nx-tenant: a b,\n");
  EXPECT_EQ(headers_with("a=1,b=2", "c=3"), "c: 3\n");
  for (const char* bad : {"api-key", "=x", "a b=1", "a=%0d%0aHost: evil", "a=%zz"}) {
    try {
      headers_with(bad, "");
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid);
      EXPECT_STREQ(error.what(),
                   "OTEL_EXPORTER_OTLP_HEADERS: pair 1 is not NAME=VALUE of a header");
    }
  }
  ::unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
  ::unsetenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS");
}

TEST(Otlp, ATargetThatIsNoneIsNamed) {
  try {
    target_with({{"OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://x"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    EXPECT_EQ(std::string(error.what()).find("OTEL_EXPORTER_OTLP_ENDPOINT: "), 0U) << error.what();
  }
}

}  // namespace
}  // namespace hearth::cli
