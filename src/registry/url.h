// The addresses that registries name: of their tokens, and of where a layer really is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::registry {

struct Url {
  bool tls = true;
  std::string host;  // without brackets and port
  std::uint16_t port = 443;
  std::string target = "/";  // path and query, as sent

  // Who answers, without what is asked for: "https://host:443". Requests that were meant for one
  // origin must not take secrets to another.
  std::string origin() const;
  // For messages: without the query, which may hold a signature.
  std::string shown() const;

  bool operator==(const Url&) const = default;
};

// "https://host[:port]/path?query" and the same with http. Throws Error(invalid): other schemes,
// users and passwords, fragments, bytes that may not stand in a URL.
Url parse_url(std::string_view text);

// "host[:port]", as in an image's name.
Url url_of_host(std::string_view host, bool tls);

// Where `location` leads that was read at `base`: absolute, or "/path" on the same host.
Url resolve(const Url& base, std::string_view location);

// For one value in a query or form.
std::string form_encode(std::string_view text);

}  // namespace hearth::registry
