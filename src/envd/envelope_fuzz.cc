// Streams from strangers: their envelopes, and the heads that announce them.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "envd/connect.h"
#include "envd/file_rules.h"

using namespace hearth;
using namespace hearth::envd;

namespace {

std::vector<std::string> read_all(std::string_view bytes, std::size_t size) {
  std::string piece;
  EnvelopeReader reader([&] {
    piece = bytes.substr(0, size);
    bytes.remove_prefix(piece.size());
    return std::string_view(piece);
  });
  std::vector<std::string> all;
  try {
    while (const auto envelope = reader.next()) all.push_back(envelope->payload);
  } catch (const Error& error) {
    all.push_back(error.what());
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  HEARTH_ASSERT(read_all(input, size + 1) == read_all(input, 1));

  const std::string text(input);
  const http::Headers headers = {{"Content-Type", text},       {"Authorization", text},
                                 {"Connect-Timeout-Ms", text}, {"Keepalive-Ping-Interval", text},
                                 {"Accept-Encoding", text},    {"Range", text},
                                 {"If-Modified-Since", text}};
  find_call(headers);
  Call call;
  try {
    read_call_head(headers, call);
  } catch (const RpcError& error) {
    HEARTH_ASSERT(error.rpc_code() == RpcCode::invalid_argument);
  }
  choose_encoding(headers);
  const RangeAnswer answer = evaluate_conditions(headers, 1000, Time{});
  HEARTH_ASSERT(answer.range.begin + answer.range.size <= 1000);
  content_disposition(input);
  content_type_of(input, input);
  return 0;
}
