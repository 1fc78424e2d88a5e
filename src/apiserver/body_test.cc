#include "apiserver/body.h"

#include <gtest/gtest.h>

#include "apiserver/views_testing.h"
#include "model/status.h"

namespace hearth::apiserver {
namespace {

std::string read(Resource resource, const std::string& body) {
  http::Request request;
  request.method = "POST";
  request.body = body;
  Call call{.request = request,
            .user = {},
            .query = Query(""),
            .catalogue = nullptr,
            .path = ResourcePath{},
            .resource = shared(std::move(resource))};
  return model::to_text(read_object(call).value);
}

TEST(BodyTest, PathsOfBuiltInKindsSayTheType) {
  EXPECT_EQ(read(pods(), R"({"metadata":{"name":"x"}})"),
            R"({"metadata":{"name":"x"},"kind":"Pod","apiVersion":"v1"})");
  EXPECT_EQ(read(pods(), R"({"kind":"Pod"})"), R"({"kind":"Pod","apiVersion":"v1"})");
}

TEST(BodyTest, OtherBodiesMustSayTheirType) {
  EXPECT_THROW(read(sandboxes(), R"({"metadata":{"name":"x"}})"), model::StatusError);
  EXPECT_THROW(read(sandboxes(), R"({"kind":"Sandbox"})"), model::StatusError);
  EXPECT_THROW(read(pods(), R"({"kind":"Node","apiVersion":"v1"})"), model::StatusError);
  EXPECT_THROW(read(pods(), "[]"), model::StatusError);
  EXPECT_THROW(read(pods(), "{"), model::StatusError);
}

}  // namespace
}  // namespace hearth::apiserver
