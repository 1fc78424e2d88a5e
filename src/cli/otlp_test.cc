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
