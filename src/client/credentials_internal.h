// Who we say we are, at this moment: tokens rotate in their files, plugins hand out short-lived
// ones.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "client/cluster_access.h"

namespace hearth::client {

struct Credential {
  std::string authorization;  // the header's value; empty: none
  // As PEM text; empty: none.
  std::string certificate;
  std::string key;

  bool operator==(const Credential&) const = default;
};

// Thread-safe. Whoever comes while a plugin runs waits for it: it is run once for all.
class Credentials {
 public:
  // The clock must outlive it.
  Credentials(ClusterAccess access, const Clock& clock);

  // Throws Error: a token file that cannot be read, a plugin that fails. No secret is in its words.
  Credential current();
  // The server did not accept `used`: another one is made next time.
  void refuse(const Credential& used);

 private:
  Credential make();

  const ClusterAccess access_;
  const Clock& clock_;
  std::mutex mutex_;  // guards what follows; held while a plugin runs
  std::optional<Credential> kept_;
  Time kept_until_;
};

// What a plugin said, checked. `expires` is left alone where it does not say.
// Throws Error(invalid) without quoting any of it.
Credential parse_exec_credential(std::string_view text, std::string_view api_version,
                                 Time& expires);

}  // namespace hearth::client
