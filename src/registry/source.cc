#include "registry/source.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <boost/json/value.hpp>

#include "base/error.h"
#include "registry/challenge.h"
#include "registry/digest.h"
#include "registry/json_internal.h"

namespace hearth::registry {
namespace {

constexpr int kMaxRedirects = 5;
// Enough for the word that says what is wrong; the rest is for other programs.
constexpr std::size_t kMaxErrorText = 16 << 10;
constexpr Duration kTokenPatience = std::chrono::seconds(30);

bool is_redirect(unsigned status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool is_success(unsigned status) {
  return status == 200 || status == 206;
}

Duration retry_after(const net::Response& response) {
  const std::string_view text = response.headers.value("Retry-After");
  unsigned seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return std::chrono::seconds(std::min(seconds, 3600U));
}

// {"errors": [{"code": "MANIFEST_UNKNOWN", ...}]}: the code, in brackets. Anything longer than a
// word could say anything, secrets included.
std::string error_word(const std::string& text) {
  try {
    const boost::json::value value = parse_json(text, "the error");
    const auto* errors = find_array(object_of(value, "the error"), "errors");
    if (errors == nullptr || errors->empty()) return {};
    const std::string word = find_text(object_of(errors->front(), "the error"), "code");
    const bool is_word =
        !word.empty() && word.size() <= 40 &&
        std::ranges::all_of(word, [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
    return is_word ? fmt::format(" ({})", word) : std::string();
  } catch (const Error&) {
    return {};
  }
}

// "bytes 100-199/200": where the bytes begin that came.
std::optional<std::uint64_t> parse_range_begin(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  std::uint64_t begin = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), begin);
  if (error != std::errc() || end == text.data() + text.size() || *end != '-') return std::nullopt;
  return begin;
}

}  // namespace

Source::Source(Transport& transport, SourceOptions options)
    : transport_(transport),
      options_(std::move(options)),
      authorization_(transport, options_.registry, options_.repository, options_.credentials) {}

net::Response Source::ask(const Url& url, const Wanted& wanted, const std::string& authorization,
                          const net::BodyReceiver& receiver) {
  net::Request request{.target = url.target, .headers = wanted.headers};
  if (!authorization.empty()) request.headers.add("Authorization", authorization);
  Duration timeout = wanted.timeout;
  if (!options_.deadline.is_never()) {
    timeout = std::min<Duration>(timeout,
                                 std::chrono::milliseconds(options_.deadline.poll_milliseconds()));
  }
  if (timeout <= Duration::zero()) fail(Code::timeout, "it took longer than allowed");
  // Answers that are no success are small, or not for us.
  const net::BodyReceiver bounded = [&, bytes = std::size_t{0}](const net::Response& head,
                                                                std::string_view piece) mutable {
    if (!is_success(head.status) && (bytes += piece.size()) > kMaxErrorText) {
      check_status(head, {}, wanted);
      fail(Code::invalid, "{} answers {} and does not end", url.shown(), head.status);
    }
    receiver(head, piece);
  };
  return transport_.client_for(url).fetch_into(
      std::move(request), bounded,
      {.timeout = timeout, .max_body_bytes = wanted.max_bytes, .silence = options_.silence});
}

net::Response Source::follow(const Wanted& wanted, const net::BodyReceiver& receiver) {
  const std::string own_origin = options_.registry.origin();
  Url url = options_.registry;
  url.target = "/v2/" + options_.repository + '/' + wanted.path;
  for (int hops = 0; hops <= kMaxRedirects; ++hops) {
    const bool is_own = url.origin() == own_origin;
    const std::string used = is_own ? authorization_.current() : std::string();
    net::Response response = ask(url, wanted, used, receiver);
    if (response.status == 401 && is_own) {
      const auto challenges = parse_challenges(response.headers.value("WWW-Authenticate"));
      authorization_.renew(used, challenges, kTokenPatience);
      response = ask(url, wanted, authorization_.current(), receiver);
    }
    if (!is_redirect(response.status)) return response;
    const std::string_view location = response.headers.value("Location");
    if (location.empty()) fail(Code::invalid, "{} redirects to nowhere", url.shown());
    const bool was_encrypted = url.tls;
    url = resolve(url, location);
    if (was_encrypted && !url.tls) {
      fail(Code::invalid, "{} redirects to {}, which is not encrypted", own_origin, url.shown());
    }
  }
  fail(Code::invalid, "{} redirects more than {} times", own_origin, kMaxRedirects);
}

void Source::check_status(const net::Response& response, const std::string& error_text,
                          const Wanted& wanted) const {
  const unsigned status = response.status;
  if (is_success(status)) return;
  const std::string where = fmt::format("'{}' at {}", options_.repository, name());
  const std::string word = error_word(error_text);
  if (status == 401) {
    fail(Code::unauthenticated, "{} of {}: there is no such image, or it wants other credentials{}",
         wanted.what, where, word);
  }
  if (status == 403) fail(Code::forbidden, "{} of {}: access denied{}", wanted.what, where, word);
  if (status == 404) fail(Code::not_found, "there is no {} of {}{}", wanted.what, where, word);
  const std::string text = fmt::format("{} of {}: the registry answers {} {}{}", wanted.what, where,
                                       status, net::reason_phrase(status), word);
  if (status == 429 || status >= 500) throw Busy(text, retry_after(response));
  throw Error(Code::invalid, text);
}

net::Response Source::get(const Wanted& wanted, const net::BodyReceiver& receiver) {
  std::string error_text;
  const net::BodyReceiver sorted = [&](const net::Response& head, std::string_view piece) {
    if (is_success(head.status)) {
      receiver(head, piece);
    } else {
      error_text += piece;
    }
  };
  net::Response response = follow(wanted, sorted);
  check_status(response, error_text, wanted);
  return response;
}

std::string Source::get_text(const Wanted& wanted, std::string& content_type,
                             const RetryOptions& options) {
  Retry retry(options);
  while (true) {
    try {
      std::string text;
      const auto keep = [&](const net::Response&, std::string_view piece) { text += piece; };
      const net::Response response = get(wanted, keep);
      content_type = response.headers.value("Content-Type");
      return text;
    } catch (const Error& error) {
      if (error.code() == Code::exhausted) {
        fail(Code::exhausted, "{} of '{}' at {} is larger than {} bytes", wanted.what,
             options_.repository, name(), wanted.max_bytes);
      }
      // OpenSSL's words for a server that answers a handshake with plain HTTP.
      if (std::string_view(error.what()).find("wrong version number") != std::string_view::npos) {
        fail(Code::invalid, "{} does not speak TLS; if that is meant to be so, allow plain HTTP",
             name());
      }
      retry.wait_or_rethrow(error);
    }
  }
}

Source::Answer Source::get_manifest(const std::string& version, const RetryOptions& retry) {
  Answer answer;
  const Wanted wanted{.what = fmt::format("manifest '{}'", version),
                      .path = "manifests/" + version,
                      .headers = {{"Accept", std::string(accepted_documents())}}};
  answer.text = get_text(wanted, answer.content_type, retry);
  return answer;
}

std::string Source::get_document(const Descriptor& blob, const RetryOptions& retry) {
  if (blob.size > kMaxDocument) {
    fail(Code::invalid, "the image's configuration has {} bytes; {} are allowed", blob.size,
         kMaxDocument);
  }
  std::string content_type;
  const Wanted wanted{.what = "configuration", .path = "blobs/" + blob.digest};
  std::string text = get_text(wanted, content_type, retry);
  if (sha256_of(text) != blob.digest) {
    fail(Code::invalid, "the configuration of '{}' at {} is not what its digest says",
         options_.repository, name());
  }
  return text;
}

void Source::read_blob(const Descriptor& blob, std::uint64_t offset, const BlobReceiver& receiver) {
  Wanted wanted{.what = fmt::format("layer {}", blob.digest),
                .path = "blobs/" + blob.digest,
                // The layer's size is checked below; a refusal may be longer than a small layer.
                .max_bytes = blob.size + kMaxErrorText,
                .timeout = std::chrono::hours(24)};
  if (offset > 0) wanted.headers.add("Range", fmt::format("bytes={}-", offset));
  std::uint64_t at = 0;
  bool is_first = true;
  const auto number = [&](const net::Response& head, std::string_view piece) {
    if (std::exchange(is_first, false) && head.status == 206) {
      const auto begin = parse_range_begin(head.headers.value("Content-Range"));
      if (!begin || *begin != offset) {
        fail(Code::invalid, "{} sends another part of a layer than it was asked for", name());
      }
      at = offset;
    }
    if (at > blob.size || piece.size() > blob.size - at) {
      fail(Code::invalid, "layer {} at {} is larger than its manifest says", blob.digest, name());
    }
    receiver(at, piece);
    at += piece.size();
  };
  get(wanted, number);
}

}  // namespace hearth::registry
