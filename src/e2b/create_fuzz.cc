// Bodies of creates: refused with a 4xx or 501, or read into something within bounds.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "e2b/create_request.h"
#include "e2b/refusal_testing_internal.h"
#include "e2b/template_reference.h"
#include "model/meta.h"

namespace hearth::e2b {
namespace {

void check_request(const CreateRequest& request) {
  check(!request.template_reference.empty());
  check(request.timeout_seconds > 0 && request.timeout_seconds <= INT32_MAX);
  check(request.pauses_memory || (request.pauses && !request.wakes));
  check(request.network.is_public() || request.is_secure);
  for (const auto& [name, value] : request.environment)
    check(!name.empty() && name.find('=') == name.npos && value.find('\0') == value.npos);
  // What is written on the object is read back as the same.
  const Json sandbox =
      JsonObject{{"metadata", JsonObject{{"annotations", network_annotations(request.network)}}}};
  const pool::Egress egress = egress_of(sandbox);
  const pool::Egress wanted = request.network.egress.egress();
  check(egress.allow == wanted.allow && egress.deny == wanted.deny);
}

}  // namespace
}  // namespace hearth::e2b

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth::e2b;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Generation generation : {Generation::v1, Generation::v2})
    attempt({400, 501}, [&] { check_request(parse_create(Body::parse(text), generation)); });
  attempt({400, 501}, [&] { check(!parse_template_reference(text).alias.empty()); });
  return 0;
}
