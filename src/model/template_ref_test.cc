#include "model/template_ref.h"

#include <gtest/gtest.h>

namespace hearth::model {
namespace {

Json pool_of(std::string_view reference) {
  return JsonObject{{"metadata", JsonObject{{"name", "pool"}, {"namespace", "blue"}}},
                    {"spec", JsonObject{{"sandboxTemplateRef", JsonObject{{"name", reference}}}}}};
}

TEST(TemplateRef, IsOfThePoolsOwnNamespaceUnlessItNamesAnother) {
  EXPECT_EQ(template_key_of(pool_of("base")), (Key{"blue", "base"}));
  EXPECT_EQ(template_key_of(pool_of("default/base")), (Key{"default", "base"}));
}

TEST(TemplateRef, OnlyWhatIsPublicIsUsableFromElsewhere) {
  Json made = JsonObject{{"metadata", JsonObject{{"name", "base"}, {"namespace", "red"}}}};
  EXPECT_TRUE(is_usable_from("red", made));
  EXPECT_FALSE(is_usable_from("blue", made));
  for (const auto& [value, is_public] : {std::pair{"true", true}, {"false", false}, {"", false}}) {
    make_object_at(made, {"metadata", "labels"})["hearth.dev/public"] = value;
    EXPECT_EQ(is_usable_from("blue", made), is_public) << value;
    EXPECT_TRUE(is_usable_from("red", made));
  }
}

}  // namespace
}  // namespace hearth::model
