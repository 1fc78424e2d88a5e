// filesystem.Filesystem, without watching.
#include <sys/stat.h>

#include "envd/cors.h"
#include "envd/service_internal.h"

namespace hearth::envd {
namespace {

// A listing that is larger goes out while it is being made.
constexpr std::size_t kKept = std::size_t{256} << 10;

// A ListDirResponse, entry by entry: a tree of a million files needs no memory for them.
class Listing {
 public:
  Listing(serve::Exchange& exchange, const Call& call) : exchange_(exchange), call_(call) {}

  void add(const EntryInfo& entry) {
    if (call_.codec == Codec::json) {
      text_ += is_empty_ ? R"({"entries":[)" : ",";
      text_ += to_json(entry);
    } else {
      // Messages one after the other are one message.
      text_ += to_proto(ListDirResponse{.entries = {entry}});
    }
    is_empty_ = false;
    if (text_.size() > kKept) flush();
  }

  void finish() {
    if (call_.codec == Codec::json) text_ += is_empty_ ? "{}" : "]}";
    if (!exchange_.begun()) return exchange_.respond(unary_response(call_, std::move(text_)));
    flush();
    exchange_.end();
  }

 private:
  void flush() {
    if (!exchange_.begun()) exchange_.begin(unary_response(call_, {}));
    exchange_.write(text_);
    text_.clear();
  }

  serve::Exchange& exchange_;
  const Call& call_;
  std::string text_;
  bool is_empty_ = true;
};

}  // namespace

void Service::stat(serve::Exchange& exchange, const Call& call) {
  const Place place = place_of(call.user, receive<PathRequest>(exchange, call).path);
  inside::Names names;
  answer(exchange, call,
         EntryResponse{
             .entry = entry_info(inside::describe(place.path, names), call.wants_short_entries)});
}

void Service::make_dir(serve::Exchange& exchange, const Call& call) {
  const Place place = place_of(call.user, receive<PathRequest>(exchange, call).path);
  struct stat status{};
  const bool exists = ::stat(place.path.c_str(), &status) == 0;
  if (exists && !S_ISDIR(status.st_mode))
    fail(Code::invalid, "path already exists but it is not a directory: {}", place.path);
  if (exists || !inside::make_folder(place.path, place.owner()))
    fail(Code::already_exists, "directory already exists: {}", place.path);
  inside::Names names;
  answer(exchange, call,
         EntryResponse{
             .entry = entry_info(inside::describe(place.path, names), call.wants_short_entries)});
}

void Service::move(serve::Exchange& exchange, const Call& call) {
  const auto request = receive<MoveRequest>(exchange, call);
  const Place from = place_of(call.user, request.source);
  const Place to = place_of(call.user, request.destination);
  inside::move(from.path, to.path, to.owner());
  inside::Names names;
  answer(exchange, call,
         EntryResponse{.entry =
                           entry_info(inside::describe(to.path, names), call.wants_short_entries)});
}

void Service::list_dir(serve::Exchange& exchange, const Call& call) {
  const auto request = receive<ListDirRequest>(exchange, call);
  const Place place = place_of(call.user, request.path);
  Listing listing(exchange, call);
  inside::list(place.path, request.depth == 0 ? 1 : request.depth, [&](inside::Entry entry) {
    listing.add(entry_info(std::move(entry), call.wants_short_entries));
  });
  listing.finish();
}

void Service::remove(serve::Exchange& exchange, const Call& call) {
  inside::remove(place_of(call.user, receive<PathRequest>(exchange, call).path).path);
  answer(exchange, call, Empty{});
}

}  // namespace hearth::envd
