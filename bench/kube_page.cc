#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "apiserver/server.h"
#include "base/on_failure.h"
#include "bench/entry.h"
#include "bench/interleave.h"
#include "bench/interrupt.h"
#include "bench/kube_actors.h"
#include "bench/kube_servers.h"
#include "bench/machine.h"
#include "bench/memory.h"
#include "bench/page.h"
#include "bench/statistics.h"
#include "store/store.h"

namespace hearth::bench {
namespace {

namespace fs = std::filesystem;

struct CaseNames {
  const char* name;
  const char* subjects;
};
constexpr std::array<CaseNames, 12> kCases = {
    {{.name = "create", .subjects = "hearth hearth_local hearth_store etcd"},
     {.name = "update", .subjects = "hearth hearth_local hearth_store etcd"},
     {.name = "get", .subjects = "hearth hearth_local hearth_store etcd"},
     {.name = "list_500", .subjects = "hearth etcd"},
     {.name = "list_10000", .subjects = "hearth etcd"},
     {.name = "writes_1", .subjects = "hearth hearth_local hearth_store etcd"},
     {.name = "writes_16", .subjects = "hearth hearth_local hearth_store etcd"},
     {.name = "writes_64", .subjects = "hearth hearth_local hearth_store etcd"},
     {.name = "writes_256", .subjects = "hearth hearth_local hearth_store etcd"},
     {.name = "fan_out", .subjects = "hearth"},
     {.name = "object_memory", .subjects = "hearth etcd"},
     {.name = "start", .subjects = "hearth etcd"}}};

constexpr unsigned kSomeObjects = 500;
constexpr unsigned kFillers = 16;  // writers that make many objects
constexpr unsigned kInARow = 10;

// How many there are of what is many. A run that only shows that all of it works has fewer.
struct Crowd {
  unsigned objects = 10'000;
  unsigned watchers = 1'000;
};
Crowd crowd_for(unsigned rounds) {
  constexpr unsigned kThorough = 40;
  return rounds >= kThorough ? Crowd{} : Crowd{.objects = 1'000, .watchers = 50};
}

class KubePage {
 public:
  explicit KubePage(const PageOptions& options);
  KubePage(const KubePage&) = delete;
  KubePage& operator=(const KubePage&) = delete;
  ~KubePage();

  Results run();

 private:
  struct Party {
    std::string subject;
    std::function<Actor()> make_actor;
  };

  bool wants(std::string_view name) const { return options_.only.empty() || options_.only == name; }
  void attempt(const char* name, const std::function<void()>& what);
  void note(const char* name, const Contender& contender);
  void take_turns(const char* name, std::vector<Contender> contenders, unsigned rounds,
                  unsigned in_a_row);

  std::vector<Party> parties();

  void measure_single(const char* name, std::function<void()> Actor::* verb);
  void measure_writes(const char* name, unsigned writers);
  void fill(const std::string& ns, unsigned count) const;
  void measure_list(const char* name, const std::string& ns, unsigned count);
  void measure_fan_out() const;
  void measure_memory();
  void measure_start();

  PageOptions options_;
  Effort effort_;
  Crowd crowd_;
  std::string folder_;
  std::unique_ptr<ApiServer> server_;
  std::unique_ptr<Etcd> etcd_;
  std::unique_ptr<apiserver::Server> local_;
  std::unique_ptr<store::Store> store_;
  std::string value_;  // what etcd keeps in place of a ConfigMap: as many bytes as we keep
  mutable Results results_;
};

KubePage::KubePage(const PageOptions& options)
    : options_(options),
      effort_(effort_for(options.rounds)),
      crowd_(crowd_for(options.rounds)),
      folder_(
          fmt::format("{}/hearth-bench-kube-{}", fs::temp_directory_path().string(), ::getpid())) {
  fs::create_directory(folder_);
  OnFailure undo([this] { fs::remove_all(folder_); });
  server_ = std::make_unique<ApiServer>(folder_ + "/hearth");
  server_->start();
  try {
    etcd_ = std::make_unique<Etcd>(folder_ + "/etcd");
    etcd_->start();
  } catch (const Error& error) {
    etcd_.reset();
    results_.skip("", "etcd", error.what());
  }
  fs::create_directory(folder_ + "/local");
  local_ = std::make_unique<apiserver::Server>(
      apiserver::ServerOptions{.state_dir = folder_ + "/local"});
  store_ = std::make_unique<store::Store>(store::Options{.path = folder_ + "/store.db"});
  value_ = server_->connect().ask(
      kube_request("POST", target_of("default"), config_map("default", "first", "")));
  undo.release();
}

KubePage::~KubePage() {
  server_.reset();
  etcd_.reset();
  local_.reset();
  store_.reset();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

// What one case lacks must not take the others with it.
void KubePage::attempt(const char* name, const std::function<void()>& what) {
  if (!wants(name)) return;
  std::fputs(fmt::format("{} ...\n", name).c_str(), stderr);
  try {
    what();
  } catch (const Error& error) {
    results_.skip(name, "hearth", error.what());
  }
}

void KubePage::note(const char* name, const Contender& contender) {
  if (!contender.failure.empty()) return results_.skip(name, contender.subject, contender.failure);
  const Summary summary = summarize(contender.turns);
  results_.rows.push_back({.bench_case = name,
                           .subject = contender.subject,
                           .p50_us = summary.p50,
                           .p99_us = summary.p99,
                           .n = summary.count});
}

void KubePage::take_turns(const char* name, std::vector<Contender> contenders, unsigned rounds,
                          unsigned in_a_row) {
  interleave(contenders, {.warm_up = 1, .rounds = rounds, .in_a_row = in_a_row});
  for (const Contender& contender : contenders) note(name, contender);
}

std::vector<KubePage::Party> KubePage::parties() {
  std::vector<Party> all = {{"hearth", [this] { return hearth_actor(*server_); }},
                            {"hearth_local", [this] { return local_actor(local_->client()); }},
                            {"hearth_store", [this] { return store_actor(*store_, value_); }}};
  if (etcd_) all.push_back({"etcd", [this] { return etcd_actor(*etcd_, value_); }});
  return all;
}

void KubePage::measure_single(const char* name, std::function<void()> Actor::* verb) {
  std::vector<Contender> contenders;
  for (const Party& party : parties()) {
    const auto actor = std::make_shared<Actor>(party.make_actor());
    contenders.push_back({.subject = party.subject, .take_turn = [actor, verb] {
                            const Moment begin = now();
                            ((*actor).*verb)();
                            return us_between(begin, now());
                          }});
  }
  const unsigned in_a_row = std::min(kInARow, options_.rounds);
  take_turns(name, std::move(contenders), options_.rounds / in_a_row * 2, in_a_row);
}

void KubePage::measure_writes(const char* name, unsigned writers) {
  struct Team {
    std::string subject;
    std::vector<Actor> actors;
    std::vector<double> rates;
  };
  std::vector<Team> teams;
  for (const Party& party : parties()) {
    Team team{party.subject, {}, {}};
    for (unsigned i = 0; i < writers; ++i) team.actors.push_back(party.make_actor());
    teams.push_back(std::move(team));
  }
  for (unsigned slice = 0; slice < effort_.slices * 2 + 1; ++slice) {
    for (Team& team : teams) {
      check_interrupts();
      team.rates.push_back(write_rate(team.actors, effort_.slice));
    }
  }
  for (const Team& team : teams)
    results_.rows.push_back({.bench_case = name,
                             .subject = team.subject,
                             .per_s = summarize(team.rates).p50,
                             .n = team.rates.size()});
}

// So many ConfigMaps in a namespace of the server, and as many keys in etcd.
void KubePage::fill(const std::string& ns, unsigned count) const {
  server_->connect().ask(kube_request(
      "POST", "/api/v1/namespaces",
      fmt::format(R"({{"kind":"Namespace","apiVersion":"v1","metadata":{{"name":"{}"}}}})", ns)));
  std::vector<std::jthread> threads;
  for (unsigned filler = 0; filler < kFillers; ++filler) {
    threads.emplace_back([&, filler] {
      SurfaceClient client = server_->connect();
      for (unsigned i = filler; i < count; i += kFillers)
        client.ask(
            kube_request("POST", target_of(ns), config_map(ns, fmt::format("object-{}", i), "")));
      if (!etcd_) return;
      EtcdClient peer = etcd_->connect();
      for (unsigned i = filler; i < count; i += kFillers)
        peer.put(fmt::format("/{}/object-{}", ns, i), value_);
    });
  }
}

void KubePage::measure_list(const char* name, const std::string& ns, unsigned count) {
  fill(ns, count);
  SurfaceClient client = server_->connect();
  const std::string request = kube_request("GET", target_of(ns));
  std::vector<Contender> contenders = {{.subject = "hearth", .take_turn = [&] {
                                          const Moment begin = now();
                                          if (client.download(request) < count * value_.size() / 2)
                                            fail(Code::internal, "the list is not complete");
                                          return us_between(begin, now());
                                        }}};
  std::optional<EtcdClient> peer;
  if (etcd_) {
    peer.emplace(etcd_->connect());
    contenders.push_back({.subject = "etcd", .take_turn = [&] {
                            const Moment begin = now();
                            peer->get_all("/" + ns + "/");
                            return us_between(begin, now());
                          }});
  }
  take_turns(name, std::move(contenders), std::min(options_.rounds, 30U), 1);
}

void KubePage::measure_fan_out() const {
  std::vector<SurfaceClient> clients;
  const std::string request =
      kube_request("GET", target_of("default") + "?watch=true&labelSelector=fan%3Dout");
  for (unsigned i = 0; i < crowd_.watchers; ++i) {
    clients.push_back(server_->connect());
    clients.back().begin_stream(request);
  }
  // Last: nobody waits for long for the first request of a connection.
  SurfaceClient writer = server_->connect();
  std::vector<double> times;
  for (unsigned round = 0; round < std::min(options_.rounds, 50U); ++round) {
    check_interrupts();
    const std::string name = new_name();
    std::string body = config_map("default", name, "");
    body.replace(body.find("\"app\":\"bench\""), 13, "\"fan\":\"out\"");
    writer.ask(kube_request("POST", target_of("default"), body));
    const Moment begin = now();
    for (SurfaceClient& client : clients) client.wait_for_text(fmt::format("\"{}\"", name));
    times.push_back(us_between(begin, now()));
    // Whatever else is said about it comes before the next.
    for (SurfaceClient& client : clients) client.wait_for_text("\n");
  }
  const Summary summary = summarize(times);
  results_.rows.push_back({.bench_case = "fan_out",
                           .subject = "hearth",
                           .p50_us = summary.p50,
                           .p99_us = summary.p99,
                           .n = summary.count});
}

// On servers that have just started.
void KubePage::measure_memory() {
  const auto restart = [](auto& server) {
    server.kill();
    server.start();
    return static_cast<double>(resident_kib(server.pid()));
  };
  const double ours = restart(*server_);
  const double theirs = etcd_ ? restart(*etcd_) : 0;
  fill("memory", crowd_.objects);
  const auto note_growth = [&](const char* subject, pid_t pid, double before) {
    results_.rows.push_back(
        {.bench_case = "object_memory",
         .subject = subject,
         .kib = (static_cast<double>(resident_kib(pid)) - before) / crowd_.objects,
         .n = crowd_.objects});
  };
  note_growth("hearth", server_->pid(), ours);
  if (etcd_) note_growth("etcd", etcd_->pid(), theirs);
}

// With 10,000 objects and nothing else, after kill -9.
void KubePage::measure_start() {
  server_->kill();
  server_ = std::make_unique<ApiServer>(folder_ + "/start-hearth");
  server_->start();
  if (etcd_) {
    etcd_->kill();
    etcd_ = std::make_unique<Etcd>(folder_ + "/start-etcd");
    etcd_->start();
  }
  fill("start", crowd_.objects);
  const auto restart = [](auto& server) {
    server.kill();
    const Moment begin = now();
    server.start();
    return us_between(begin, now());
  };
  std::vector<Contender> contenders = {
      {.subject = "hearth", .take_turn = [&] { return restart(*server_); }}};
  if (etcd_)
    contenders.push_back({.subject = "etcd", .take_turn = [&] { return restart(*etcd_); }});
  take_turns("start", std::move(contenders), std::min(options_.rounds, 10U), 1);
}

Results KubePage::run() {
  std::fputs(
      "\n"
      "All take turns on the same disk and sync what they write before they answer. hearth is a\n"
      "'hearth apiserver' over TLS; hearth_local the same rules called in this process;\n"
      "hearth_store the store beneath them, which is what takes etcd's place; etcd is asked over\n"
      "gRPC without TLS by the least client there can be. An object is a ConfigMap with 1 KiB of\n"
      "data, to etcd a value of as many bytes. fan_out: from the answer to a write until the last\n"
      "of 1,000 watchers, one connection each, has it. object_memory: what the server's process\n"
      "grows by over 10,000 objects, for each. start: with 10,000 objects, after kill -9, until\n"
      "the first request is answered.\n\n",
      stdout);
  attempt("create", [&] { measure_single("create", &Actor::create); });
  attempt("update", [&] { measure_single("update", &Actor::update); });
  attempt("get", [&] { measure_single("get", &Actor::get); });
  attempt("writes_1", [&] { measure_writes("writes_1", 1); });
  attempt("writes_16", [&] { measure_writes("writes_16", 16); });
  attempt("writes_64", [&] { measure_writes("writes_64", 64); });
  attempt("writes_256", [&] { measure_writes("writes_256", 256); });
  attempt("list_500", [&] { measure_list("list_500", "some", kSomeObjects); });
  attempt("list_10000", [&] { measure_list("list_10000", "many", crowd_.objects); });
  attempt("fan_out", [&] { measure_fan_out(); });
  attempt("object_memory", [&] { measure_memory(); });
  attempt("start", [&] { measure_start(); });
  return std::move(results_);
}

}  // namespace

std::string list_kube_page() {
  std::string text;
  for (const CaseNames& each : kCases) text += fmt::format("{}: {}\n", each.name, each.subjects);
  return text;
}

Results run_kube_page(const PageOptions& options) {
  if (!options.only.empty() && std::ranges::find(kCases, options.only, [](const CaseNames& each) {
                                 return std::string(each.name);
                               }) == kCases.end()) {
    fail(Code::invalid, "there is no case '{}'; see --list", options.only);
  }
  std::fputs(describe_machine().c_str(), stdout);
  return KubePage(options).run();
}

}  // namespace hearth::bench
