#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "base/on_failure.h"
#include "bench/hearth_sandbox.h"
#include "bench/interleave.h"
#include "bench/machine.h"
#include "bench/memory.h"
#include "bench/page.h"
#include "bench/process.h"
#include "bench/statistics.h"
#include "bench/surface_client.h"
#include "bench/workshop.h"

namespace hearth::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kFileBytes = std::uint64_t{64} << 20;
constexpr unsigned kInARow = 10;

struct CaseNames {
  const char* name;
  const char* subjects;
};
constexpr std::array<CaseNames, 6> kCases = {
    {{.name = "exec_socket", .subjects = "hearth fork_exec"},
     {.name = "exec_envd", .subjects = "hearth fork_exec"},
     {.name = "cell", .subjects = "hearth python3_c_pass"},
     {.name = "upload", .subjects = "hearth cp"},
     {.name = "download", .subjects = "hearth cp"},
     {.name = "idle", .subjects = "hearth"}}};

// A sandbox with surfaces, and ways to them.
class Served {
 public:
  Served(const Engine& engine, runtime::SandboxSpec spec) : client_(engine.state_dir()) {
    for (const guest::Surface surface : {guest::Surface::envd, guest::Surface::interpreter,
                                         guest::Surface::runtime_api, guest::Surface::sandboxd}) {
      spec.surfaces.push_back({.surface = surface, .port = guest::usual_port(surface)});
    }
    created_.emplace(client_.create(spec));
    guest_.emplace(std::move(created_->guest));
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() {
    try {
      client_.destroy(created_->sandbox.id);
    } catch (const Error&) {
      // The engine destroys everything when it ends.
    }
  }

  SurfaceClient connect(guest::Surface surface) {
    return SurfaceClient(guest_->connect(guest::usual_port(surface)));
  }
  guest::Connection& guest() { return *guest_; }
  pid_t pid() const { return created_->sandbox.pid; }

 private:
  runtime::RuntimeClient client_;
  std::optional<runtime::Runtime::Created> created_;
  std::optional<guest::Connection> guest_;
};

// A request of the Connect protocol with one message.
std::string enveloped(std::string_view message) {
  std::string bytes(5, '\0');
  for (std::size_t i = 0; i < 4; ++i)
    bytes[1 + i] = static_cast<char>(message.size() >> (24 - 8 * i) & 0xff);
  return bytes.append(message);
}

double rate(Moment begin) {
  return static_cast<double>(kFileBytes) / (1 << 20) * 1e6 / us_between(begin, now());
}

class GuestPage {
 public:
  explicit GuestPage(const PageOptions& options) : options_(options) {}

  Results run();

 private:
  bool wants(std::string_view name) const { return options_.only.empty() || options_.only == name; }
  void measure(const char* name, std::vector<Contender> contenders, bool is_rate);
  void attempt(const char* name, const std::function<void()>& what);
  Contender fork_exec();
  Contender copy(const std::string& from, const std::string& to) const;
  void measure_execs();
  void measure_cells();
  void measure_files();
  void measure_idle();

  PageOptions options_;
  Workshop workshop_;
  Witness witness_;
  Results results_;
};

void GuestPage::measure(const char* name, std::vector<Contender> contenders, bool is_rate) {
  std::fputs(fmt::format("{} ...\n", name).c_str(), stderr);
  const unsigned in_a_row = std::min(is_rate ? 1U : kInARow, options_.rounds);
  const unsigned rounds = is_rate ? std::min(options_.rounds, 15U) : options_.rounds / in_a_row;
  interleave(contenders, {.warm_up = 1, .rounds = rounds, .in_a_row = in_a_row});
  for (const Contender& contender : contenders) {
    if (!contender.failure.empty()) {
      results_.skip(name, contender.subject, contender.failure);
      continue;
    }
    const Summary summary = summarize(contender.turns);
    Row row{.bench_case = name, .subject = contender.subject, .n = summary.count};
    if (is_rate) {
      row.per_s = summary.p50;
    } else {
      row.p50_us = summary.p50;
      row.p99_us = summary.p99;
    }
    results_.rows.push_back(row);
  }
}

// What one case lacks must not take the others with it.
void GuestPage::attempt(const char* name, const std::function<void()>& what) {
  if (!wants(name)) return;
  try {
    what();
  } catch (const Error& error) {
    results_.skip(name, "hearth", error.what());
  }
}

Contender GuestPage::fork_exec() {
  return {.subject = "fork_exec", .take_turn = [this] {
            const double time = time_vfork_exec(workshop_.noop(), witness_.fd());
            witness_.take_byte();
            return time;
          }};
}

void GuestPage::measure_execs() {
  Served box(workshop_.engine(), bench_spec());
  const linux::Fd null = linux::open_file("/dev/null", O_RDWR);
  const guest::ExecRequest request = request_of({"/noop"});
  attempt("exec_socket", [&] {
    measure("exec_socket",
            {{.subject = "hearth",
              .take_turn =
                  [&] {
                    const Moment begin = now();
                    check_end(box.guest().run(
                        request, {.input = null.get(), .output = null.get(), .error = null.get()}));
                    return us_between(begin, now());
                  }},
             fork_exec()},
            /*is_rate=*/false);
  });
  attempt("exec_envd", [&] {
    SurfaceClient client = box.connect(guest::Surface::envd);
    const std::string start =
        render_request("POST", "/process.Process/Start", "application/connect+json",
                       enveloped(R"({"process":{"cmd":"/noop","cwd":"/"},"stdin":false})"));
    measure("exec_envd",
            {{.subject = "hearth",
              .take_turn =
                  [&] {
                    const Moment begin = now();
                    const std::string_view answer = client.ask(start);
                    const double time = us_between(begin, now());
                    if (answer.find("exit status 0") == std::string_view::npos)
                      fail(Code::internal, "envd answered '{}'", answer);
                    return time;
                  }},
             fork_exec()},
            /*is_rate=*/false);
  });
}

void GuestPage::measure_cells() {
  Served box(workshop_.engine(), {});
  SurfaceClient client = box.connect(guest::Surface::interpreter);
  const std::string execute =
      render_request("POST", "/execute", "application/json", R"({"code":"1 + 1"})");
  client.ask(execute);  // its Python starts
  constexpr const char* kPython = "/usr/bin/python3";
  measure("cell",
          {{.subject = "hearth",
            .take_turn =
                [&] {
                  const Moment begin = now();
                  const std::string_view answer = client.ask(execute);
                  const double time = us_between(begin, now());
                  if (answer.find(R"("text":"2")") == std::string_view::npos &&
                      answer.find(R"("text": "2")") == std::string_view::npos)
                    fail(Code::internal, "the cell answered '{}'", answer);
                  return time;
                }},
           {.subject = "python3_c_pass",
            .take_turn =
                [&] {
                  const Moment begin = now();
                  run_command({kPython, "-c", "pass"});
                  return us_between(begin, now());
                }}},
          /*is_rate=*/false);
}

// Between files in memory, where ours lie too.
Contender GuestPage::copy(const std::string& from, const std::string& to) const {
  return {.subject = "cp", .take_turn = [from, to] {
            const Moment begin = now();
            run_command({find_program("cp"), from, to});
            const double figure = rate(begin);
            fs::remove(to);
            return figure;
          }};
}

void GuestPage::measure_files() {
  const std::string folder = fmt::format("/dev/shm/{}", workshop_.new_name());
  fs::create_directory(folder);
  const OnFailure remove([&] { fs::remove_all(folder); });  // in any case
  const std::string from = folder + "/from";
  const linux::Fd file = linux::open_file(from, O_RDWR | O_CREAT | O_EXCL, 0600);
  const std::string piece(1 << 20, 'x');
  for (std::uint64_t i = 0; i < kFileBytes; i += piece.size()) linux::write_all(file.get(), piece);

  Served box(workshop_.engine(), bench_spec());
  SurfaceClient client = box.connect(guest::Surface::envd);
  const std::string target = "/files?path=/tmp/file&username=root";
  const std::string head = fmt::format(
      "POST {} HTTP/1.1\r\nHost: sandbox\r\nContent-Type: application/octet-stream\r\n"
      "Content-Length: {}\r\n\r\n",
      target, kFileBytes);
  attempt("upload", [&] {
    measure("upload",
            {{.subject = "hearth",
              .take_turn =
                  [&] {
                    const Moment begin = now();
                    client.upload(head, file.get(), kFileBytes);
                    return rate(begin);
                  }},
             copy(from, folder + "/to")},
            /*is_rate=*/true);
  });
  attempt("download", [&] {
    client.upload(head, file.get(), kFileBytes);
    const std::string get = fmt::format("GET {} HTTP/1.1\r\nHost: sandbox\r\n\r\n", target);
    measure("download",
            {{.subject = "hearth",
              .take_turn =
                  [&] {
                    const Moment begin = now();
                    if (client.download(get) != kFileBytes)
                      fail(Code::internal, "the download is not what was uploaded");
                    return rate(begin);
                  }},
             copy(from, folder + "/to")},
            /*is_rate=*/true);
  });
}

void GuestPage::measure_idle() {
  Served box(workshop_.engine(), bench_spec());
  for (const guest::Surface surface : {guest::Surface::envd, guest::Surface::sandboxd}) {
    SurfaceClient client = box.connect(surface);
    client.ask(render_request("GET", surface == guest::Surface::envd ? "/health" : "/v1/health",
                              "text/plain", ""));
  }
  results_.rows.push_back({.bench_case = "idle",
                           .subject = "hearth",
                           .kib = static_cast<double>(resident_kib(box.pid())),
                           .n = 1});
}

Results GuestPage::run() {
  std::fputs(
      "\n"
      "All take turns. The program of exec_socket and exec_envd is static and ends at once; the\n"
      "latter asks over HTTP, on one connection. A cell is '1 + 1' in a Python that runs. Files\n"
      "have 64 MiB and lie in memory on both sides; figures are MiB a second. idle is what the\n"
      "guest's process has resident when all surfaces listen and two have been used.\n\n",
      stdout);
  if (wants("exec_socket") || wants("exec_envd")) measure_execs();
  attempt("cell", [&] { measure_cells(); });
  if (wants("upload") || wants("download")) measure_files();
  attempt("idle", [&] { measure_idle(); });
  return std::move(results_);
}

}  // namespace

std::string list_guest_page() {
  std::string text;
  for (const CaseNames& each : kCases) text += fmt::format("{}: {}\n", each.name, each.subjects);
  return text;
}

Results run_guest_page(const PageOptions& options) {
  if (!options.only.empty() && std::ranges::find(kCases, options.only, [](const CaseNames& each) {
                                 return std::string(each.name);
                               }) == kCases.end()) {
    fail(Code::invalid, "there is no case '{}'; see --list", options.only);
  }
  std::fputs(describe_machine().c_str(), stdout);
  return GuestPage(options).run();
}

}  // namespace hearth::bench
