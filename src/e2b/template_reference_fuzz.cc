// References to templates and tokens of pages: refused with a 400, or read into something that says
// the same again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "e2b/page.h"
#include "e2b/refusal_testing_internal.h"
#include "e2b/template_names.h"
#include "e2b/template_reference.h"

namespace hearth::e2b {
namespace {

void check_reference(std::string_view text) {
  const TemplateReference reference = parse_template_reference(text);
  check(!reference.alias.empty() && !reference.tag.empty());
  // Names are kept in one annotation, with commas between.
  check(reference.full_name().find(',') == std::string::npos);
  check(reference.full_name().find('/') == std::string::npos);
  const std::string whole =
      (reference.ns.empty() ? "" : reference.ns + "/") + reference.full_name();
  const TemplateReference again = parse_template_reference(whole);
  check(again.ns == reference.ns && again.full_name() == reference.full_name());
}

void check_new_name(std::string_view text) {
  tenants::KeyHolder holder;
  holder.team = holder.ns = "mine";
  const TemplateReference name = parse_new_name(holder, text);
  check(name.ns.empty() || name.ns == "mine");
}

void check_page_mark(std::string_view text) {
  const PageMark mark = parse_page_mark(text);
  check(parse_page_mark(render_page_mark(mark)) == mark);
}

}  // namespace
}  // namespace hearth::e2b

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth::e2b;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  attempt({400, 403}, [&] { check_reference(text); });
  attempt({400, 403}, [&] { check_new_name(text); });
  attempt({400, 403}, [&] { check_page_mark(text); });
  return 0;
}
