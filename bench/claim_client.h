// The client's side of the page `claims`: claims that are made on connections of their own, and one
// watch that sees when they are Ready.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/process.h"
#include "bench/surface_client.h"

namespace hearth::bench {

// Where an API server is.
struct ApiAddress {
  std::uint16_t port = 0;
  std::string token;

  SurfaceClient connect() const;
  std::string request(std::string_view method, std::string_view target,
                      std::string_view body = {}) const;
};

inline constexpr std::string_view kBenchPool = "bench";

std::string claims_target(std::string_view name = {});
std::string claim_body(std::string_view name);

// A claim that became Ready, as the watch saw it.
struct ReadyClaim {
  Moment at;
  std::uint64_t version = 0;  // resourceVersion; 0: it is not yet
  bool is_warm = false;
};

// All claims of the namespace, on a thread of its own. Throws Error where a wait takes too long or
// the watch has ended.
class ClaimWatch {
 public:
  explicit ClaimWatch(const ApiAddress& address);
  ClaimWatch(const ClaimWatch&) = delete;
  ClaimWatch& operator=(const ClaimWatch&) = delete;
  ~ClaimWatch();

  ReadyClaim wait_ready(const std::string& name);
  // Until there is none left.
  void wait_empty();

 private:
  void read(const std::stop_token& stop);
  void note(std::string_view line);
  void wake(const std::string& name);

  SurfaceClient client_;
  std::mutex mutex_;  // guards what follows, down to the thread
  std::condition_variable emptied_;
  std::map<std::string, ReadyClaim, std::less<>> claims_;  // those that are not, too
  // By claim, each on its waiter's stack: 500 who are all woken for each of 500 claims would keep
  // the machine busier than the engine does.
  std::map<std::string, std::condition_variable*, std::less<>> waiters_;
  std::string failure_;
  std::jthread thread_;
};

// A connection on which claims are made and unmade.
class Claimer {
 public:
  Claimer(const ApiAddress& address, ClaimWatch& watch);

  struct Claimed {
    std::string name;
    double us = 0;  // from before it was asked for until it was seen Ready
    ReadyClaim ready;
  };
  Claimed claim();
  void unclaim(const std::string& name);
  // One write that nobody acts upon, of a kind that is kept as claims are; microseconds.
  double write();
  // Both in two: what is sent, and how long it took until the answer was read, or the claim Ready.
  void send_claim();
  Claimed await_claim();
  void send_write();
  double answered();
  int readable() const { return client_.readable(); }
  // Of the whole store, now.
  std::uint64_t revision();
  // One that is synced to the disk.
  double write_synced();

 private:
  ApiAddress address_;
  ClaimWatch& watch_;
  SurfaceClient client_;
  std::string sent_name_;
  Moment sent_at_;
};

// Reads the answers to what these have sent, as they come, all on this thread: a thread each would
// cost more than the server. `answered` gets the index.
void read_answers(std::deque<Claimer>& claimers, unsigned count,
                  const std::function<void(unsigned index)>& answered);

// What each of so many does, all at once, each on a thread; begins when all are ready to. Throws
// the first Error of any.
void all_at_once(unsigned count, const std::function<void(unsigned index)>& act);

// The template and the pool that claims are served from.
class BenchPool {
 public:
  // Whom its sandboxes are for: claims, or the E2B API, which wants envd in them.
  enum class For { claims, e2b };
  BenchPool(const ApiAddress& address, const std::string& image, For whom = For::claims);

  // Waits until all of them are Ready. Throws Error(timeout).
  void set_size(unsigned count);
  void wait_full();

 private:
  unsigned ready();

  ApiAddress address_;
  SurfaceClient client_;
  unsigned size_ = 0;
};

}  // namespace hearth::bench
