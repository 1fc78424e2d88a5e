#include "model/status.h"

#include <gtest/gtest.h>

namespace hearth::model {
namespace {

Status thrown(const std::function<void()>& act) {
  try {
    act();
  } catch (const StatusError& error) {
    return error.status();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Status, SaysNotFoundAsClientsKnowIt) {
  const Status status = thrown([] { throw_not_found({"agents.x-k8s.io", "sandboxes"}, "a"); });

  EXPECT_EQ(to_text(to_json(status)),
            R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
            R"("message":"sandboxes.agents.x-k8s.io \"a\" not found","reason":"NotFound",)"
            R"("details":{"name":"a","group":"agents.x-k8s.io","kind":"sandboxes"},"code":404})");
}

TEST(Status, ListsSeveralFieldErrors) {
  const Status status = thrown([] {
    throw_invalid({"", "Pod"}, "p",
                  {required("spec.a"), not_supported("spec.b", "\"x\"", {"y", "z"})});
  });

  EXPECT_EQ(status.message,
            R"(Pod "p" is invalid: [spec.a: Required value, spec.b: Unsupported value: "x": )"
            R"(supported values: "y", "z"])");
  ASSERT_EQ(status.causes.size(), 2U);
  EXPECT_EQ(status.causes[1].reason, "FieldValueNotSupported");
}

TEST(Status, SurvivesTheWire) {
  Status status = thrown([] { throw_invalid({"g", "K"}, "n", {forbidden("f", "no")}); });
  status.retry_after_seconds = 3;

  const Status read = status_from_json(to_json(status), 0);

  EXPECT_EQ(to_text(to_json(read)), to_text(to_json(status)));
}

TEST(Status, IsMadeOfAnyError) {
  EXPECT_EQ(status_of(Error(Code::conflict, "x")).reason, "Conflict");
  EXPECT_EQ(status_of(Error(Code::exhausted, "x")).code, 429U);
}

}  // namespace
}  // namespace hearth::model
