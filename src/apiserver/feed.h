// One watch: a stream of events about objects that come, change and go.
//
// Knows the rules (selections, initial events, bookmarks, expiry), not how events travel: the HTTP
// server pulls them as lines, the in-process client as objects. Costs a cursor; a reader that stops
// reading is told "Expired" when history has moved on past it, and nobody else notices.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/selection.h"
#include "model/status.h"
#include "store/store.h"

namespace hearth::apiserver {

struct FeedOptions {
  Selection selection;
  // Changes after this revision; with initial events: at least as new as it (0: any).
  store::Revision revision = 0;
  bool initial_events = false;    // every object that is there, as ADDED, first
  bool closing_bookmark = false;  // then a bookmark that says "that was all"
  bool bookmarks = false;
};

// What has become of one object; a bookmark or an error has only text.
struct FeedEvent {
  std::string_view type;  // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
  store::ObjectPtr object;
  std::string text;
};

class Feed {
 public:
  // An object as the client wants to see it: JSON text.
  using Render = std::function<std::string(const store::Object& object)>;

  // `wake` is called, from any thread, when next() has something again after it had nothing. It
  // must not block.
  Feed(store::Store& store, ResourcePtr resource, FeedOptions options, Render render,
       std::function<void()> wake);

  // Some events, not too many; none: nothing now. After an ERROR the watch is over.
  std::vector<FeedEvent> next_events();

  struct Piece {
    std::string lines;   // whole events, each with its newline; empty: nothing now
    bool ended = false;  // the last one was an error: the watch is over
  };
  // The same as what is written to a socket in one go.
  Piece next();

  // A bookmark as of what next() has returned so far. Only if there is nothing to read now.
  std::string bookmark() const;

 private:
  void append_change(std::vector<FeedEvent>& events, const store::Change& change) const;
  FeedEvent bookmark_event(store::Revision revision, bool is_end_of_initial) const;
  FeedEvent expired(store::Revision oldest) const;

  store::Store& store_;
  const ResourcePtr resource_;
  const FeedOptions options_;
  const Render render_;
  std::vector<store::ObjectPtr> initial_;  // those still to be sent, the next one last
  bool owes_closing_bookmark_ = false;
  std::optional<model::Status> failure_;  // the only event of a watch that cannot begin
  store::Revision seen_;
  std::unique_ptr<store::Watch> watch_;
};

// Somebody has seen a revision that is still to come: of another server, or one that lost its disk.
model::Status too_new(store::Revision wanted, store::Revision current);

// One event as a line.
std::string event_line(std::string_view type, std::string_view object_text);

}  // namespace hearth::apiserver
