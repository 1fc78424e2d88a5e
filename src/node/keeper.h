// One pod on this machine, from the moment it is seen until nothing is left of it.
//
// step() reads what has happened since (the pod's spec, ends, downloads, probes), takes every step
// that is due, and writes the status if it says something new. One thread at a time. What takes
// long is done elsewhere and comes back as news.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "client/watch_cache.h"
#include "node/keeper_news.h"
#include "node/life.h"
#include "node/tools.h"
#include "reconcile/reconciler.h"

namespace hearth::node {

class Keeper {
 public:
  // Of a pod that is seen for the first time, or again: `found` are its sandboxes.
  Keeper(Tools& tools, const Json& pod, const std::vector<runtime::Sandbox>& found);
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper();

  const std::string& uid() const { return uid_; }

  // Throws Error; the same again is safe.
  reconcile::Next step(const client::Object& seen);
  // It has to go at once: the machine is short of what it uses. Thread-safe.
  void evict(std::string message);
  // The pod is no more: neither is anything of it, when this returns. Throws Error.
  void clear_away();

 private:
  // What is being done about a container, beside what is known of it.
  struct Work {
    std::optional<ImageOutcome> image;
    bool is_downloading = false;
    std::optional<ProbeState> probes;
    bool is_probing = false;
    unsigned round = 0;           // of probes; another one begins when it is paused
    bool is_unwatched = false;    // its end is asked for when it goes on
    bool is_hooked = false;       // postStart is not through
    bool is_ending = false;       // it was told to end
    bool is_told = false;         // and preStop, if any, is through
    std::optional<Time> kill_at;  // then it is killed
    unsigned failures = 0;        // to make it, in a row
    std::optional<Time> retry_at;
  };

  // keeper.cc
  void read_news(const Json& pod);
  void hear(const Json& pod, const MainEnded& news);
  void hear(const Json& pod, ImageFound news);
  void hear(const Json& pod, const Probed& news);
  void hear(const Json& pod, const Hooked& news);
  void hear(const Json& pod, const Evicted& news);
  void welcome_newcomers(const Json& pod);
  void write_status(const Json& pod);
  void look_at(Time moment);
  bool is_past(Time moment);
  void tell(const Json& pod, reconcile::EventType type, std::string_view reason,
            std::string_view action, std::string note);
  Container* find_by_sandbox(std::string_view sandbox);
  Work& work_of(const Container& container);

  // keeper_adopt.cc
  void adopt(const Json& pod, const std::vector<runtime::Sandbox>& found);
  void adopt_container(const Json& pod, Container& container,
                       const std::map<unsigned, const runtime::Sandbox*>& attempts);
  void watch_end(const std::string& sandbox, guest::Connection connection, bool has_main);

  // keeper_start.cc
  void start_due(const Json& pod);
  bool may_start(const Json& pod, Container& container);
  void back_off(const Json& pod, Container& container, Duration pause);
  void start(const Json& pod, Container& container);
  bool find_image(const Json& pod, Container& container);
  ContainerPlan make_plan(const Json& pod, const Container& container, unsigned attempt);
  void run_main(const Json& pod, Container& container, ContainerPlan plan,
                runtime::Runtime::Created created);
  void begin_life(const Json& pod, Container& container);
  void could_not(const Json& pod, Container& container, std::string_view reason,
                 std::string_view message);
  void forget_old_lives(const Container& container);
  void forget_vanished();
  void probe_due(const Json& pod);

  // keeper_pause.cc
  bool wants_pause(const Json& pod) const;
  void keep_pause(const Json& pod);
  bool pause(const Json& pod, Container& container);
  bool resume(const Json& pod, Container& container);
  void watch_again(const Json& pod, Container& container);
  bool try_later(const Json& pod, std::string_view reason, std::string_view action,
                 const Container& container, const Error& error);

  // keeper_end.cc
  void note_end(const Json& pod, Container& container, const SandboxEnd& end);
  Ending describe_end(const Json& pod, const Container& container, const SandboxEnd& end);
  void begin_end(const Json& pod, Container& container, Duration grace, const std::string& why);
  void tell_to_end(const Json& pod, Container& container);
  void kill_overdue(const Json& pod);
  void end_changed(const Json& pod);
  void end_rest(const Json& pod, Duration grace);
  void note_deadline(const Json& pod);
  void note_rejection(const Json& pod);
  void end_pod(const Json& pod);
  bool is_anything_running() const;

  Tools& tools_;
  const std::string uid_;
  const model::Key key_;
  std::shared_ptr<Mailbox> mailbox_;
  Pod known_;
  std::vector<Work> work_;            // of known_.containers
  std::set<std::string> sandboxes_;   // that there are, or may be
  std::vector<std::string> volumes_;  // that go with the pod
  client::Object written_;            // the pod as our last write left it
  Time seen_;
  std::optional<Time> look_at_;
  std::optional<Time> ending_since_;
  bool is_removed_ = false;  // the API was told that nothing is left
};

}  // namespace hearth::node
