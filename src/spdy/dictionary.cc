// The dictionary that header blocks are compressed with (SPDY/3, section 2.6.10.1): words with
// their lengths in front, as in a header block, then text without.
#include <string_view>

#include "spdy/dictionary_internal.h"

namespace hearth::spdy {
namespace {

constexpr std::string_view kWords[] = {
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
};

constexpr std::string_view kRest =
    "10010120120220520630030230330430530630740240540640740840941041141241341441541641"
    "7502504505203 Non-Authoritative Information204 No Content301 Moved Permanently40"
    "0 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error"
    "501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept O"
    "ct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,imag"
    "e/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/"
    "javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1"
    ",utf-,*,enq=0.";

std::string make_dictionary() {
  std::string text;
  for (const std::string_view word : kWords) {
    text.append(3, '\0');
    text += static_cast<char>(word.size());
    text += word;
  }
  return text += kRest;
}

}  // namespace

const std::string& dictionary() {
  static const std::string text = make_dictionary();
  return text;
}

}  // namespace hearth::spdy
