#include "e2b/create_request.h"

#include <limits>

#include "base/error.h"
#include "e2b/answers.h"

namespace hearth::e2b {
namespace {

constexpr std::int64_t kUsualTimeoutV1 = 15;
constexpr std::int64_t kUsualTimeoutV2 = 300;
// Metadata is an annotation, of which an object may have 256 KiB.
constexpr std::size_t kMostMetadataBytes = 64 << 10;
// The kernel takes 128 KiB for one of them, and a message to the guest has to hold them all.
constexpr std::size_t kMostEnvironmentBytes = 256 << 10;

std::size_t bytes_of(const Texts& texts) {
  std::size_t all = 0;
  for (const auto& [name, value] : texts) all += name.size() + value.size() + 2;
  return all;
}

void check_bytes(std::string_view field, const Texts& texts, std::size_t most) {
  if (const std::size_t bytes = bytes_of(texts); bytes > most)
    fail(Code::invalid, "the field '{}' has {} bytes; {} are the most", field, bytes, most);
}

void check_variables(const Texts& variables) {
  check_bytes("envVars", variables, kMostEnvironmentBytes);
  for (const auto& [name, value] : variables) {
    if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != name.npos)
      fail(Code::invalid, "'{}' in the field 'envVars' is no name of a variable", name);
    if (value.find('\0') != value.npos)
      fail(Code::invalid, "the variable '{}' in the field 'envVars' has a NUL", name);
  }
}

void check_offered(const Body& body) {
  if (const auto iam = body.object("iam")) {
    const auto tokens = iam->object("tokens");
    if (tokens && !tokens->is_empty()) refuse_unoffered("a workload identity", "leave out 'iam'");
  }
  if (body.has_items("volumeMounts"))
    refuse_unoffered("mounting a volume", "leave out 'volumeMounts'");
}

}  // namespace

CreateRequest parse_create(const Body& body, Generation generation) {
  const bool is_first = generation == Generation::v1;
  CreateRequest request;
  request.template_reference = body.get_text("templateID");
  request.timeout_seconds = body.number("timeout", 1, std::numeric_limits<std::int32_t>::max())
                                .value_or(is_first ? kUsualTimeoutV1 : kUsualTimeoutV2);
  request.pauses = body.flag("autoPause").value_or(false);
  request.pauses_memory = body.flag("autoPauseMemory").value_or(true);
  if (const auto resume = body.object("autoResume"))
    request.wakes = resume->flag("enabled").value_or(false);
  request.is_secure = !is_first || body.flag("secure").value_or(false);
  request.network = parse_network(body);
  request.metadata = body.texts("metadata");
  request.environment = body.texts("envVars");
  check_bytes("metadata", request.metadata, kMostMetadataBytes);
  check_variables(request.environment);
  check_offered(body);
  if (!request.pauses_memory && !request.pauses)
    fail(Code::invalid, "'autoPauseMemory' is false, which needs 'autoPause'");
  if (!request.pauses_memory && request.wakes)
    fail(Code::invalid,
         "'autoPauseMemory' is false, which excludes 'autoResume': only what keeps its memory can "
         "be woken");
  if (!request.network.is_public() && !request.is_secure)
    fail(Code::invalid, "'network.allowPublicTraffic' is false, which needs 'secure'");
  return request;
}

}  // namespace hearth::e2b
