// One repository at one registry (or mirror): its documents and blobs.
//
// Knows tokens, redirects and what status codes mean. The Authorization field goes to the registry
// itself and to nobody that it redirects us to. Calls are one attempt each, except for documents,
// which are small enough to be tried again here. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "registry/authorization.h"
#include "registry/manifest.h"
#include "registry/retry.h"
#include "registry/transport.h"

namespace hearth::registry {

struct SourceOptions {
  Url registry;
  std::string repository;
  Credentials credentials;
  Duration silence;
  Deadline deadline = Deadline::never();
};

// Gets the bytes of a blob in order; `offset` is where in the blob they begin. That is not where
// was asked for when the server knows no ranges.
using BlobReceiver = std::function<void(std::uint64_t offset, std::string_view bytes)>;

class Source {
 public:
  // `transport` must outlive it.
  Source(Transport& transport, SourceOptions options);

  struct Answer {
    std::string text;
    std::string content_type;
  };
  // By tag or digest; the caller checks the digest. Throws Error: not_found, unauthenticated,
  // forbidden, invalid, unavailable, timeout, exhausted.
  Answer get_manifest(const std::string& version, const RetryOptions& retry);
  // A small blob, checked.
  std::string get_document(const Descriptor& blob, const RetryOptions& retry);

  // From `offset` to its end, or an Error; the receiver may throw its own. Unchecked.
  void read_blob(const Descriptor& blob, std::uint64_t offset, const BlobReceiver& receiver);

  std::string name() const { return options_.registry.origin(); }

 private:
  struct Wanted {
    std::string what;  // for messages: "manifest 'latest'"
    std::string path;  // below /v2/REPOSITORY/
    net::Headers headers;
    std::uint64_t max_bytes = kMaxDocument;
    Duration timeout = std::chrono::minutes(1);
  };
  net::Response get(const Wanted& wanted, const net::BodyReceiver& receiver);
  net::Response follow(const Wanted& wanted, const net::BodyReceiver& receiver);
  net::Response ask(const Url& url, const Wanted& wanted, const std::string& authorization,
                    const net::BodyReceiver& receiver);
  void check_status(const net::Response& response, const std::string& error_text,
                    const Wanted& wanted) const;
  std::string get_text(const Wanted& wanted, std::string& content_type, const RetryOptions& retry);

  Transport& transport_;
  const SourceOptions options_;
  Authorization authorization_;
};

}  // namespace hearth::registry
