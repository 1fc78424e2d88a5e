// What a server or a plugin says, in pieces of any size: watches, lists, refusals, credentials.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "client/cluster_access.h"
#include "client/credentials_internal.h"
#include "client/lines_internal.h"
#include "client/query.h"

namespace {

using namespace hearth;

template <typename F>
void attempt(F&& parse) {
  try {
    parse();
  } catch (const Error&) {
  }
}

}  // namespace

// The first byte says how long the pieces are.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t step = data[0] + std::size_t{1};
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  attempt([&] {
    client::LineSplitter lines(4096);
    for (std::size_t at = 0; at < text.size(); at += step) {
      lines.feed(text.substr(at, step), [](std::string_view line) {
        if (line.empty() || line.find('\n') != std::string_view::npos) __builtin_trap();
        attempt([&] { client::parse_event(line); });
      });
    }
  });
  attempt([&] {
    const client::ResourceId pods{"", "v1", "pods"};
    client::list_from_json(model::parse_json(text).value, pods);
  });
  attempt([&] {
    Time expires{};
    client::parse_exec_credential(text, "client.authentication.k8s.io/v1", expires);
  });
  attempt([&] {
    const client::ServerUrl url = client::parse_server_url(text);
    if (url.host.empty() || url.port == 0 || url.base.ends_with('/')) __builtin_trap();
  });
  return 0;
}
