#include "bench/e2b_subjects.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/workshop.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"

namespace hearth::bench {
namespace {

constexpr Duration kSettlePatience = std::chrono::minutes(2);
constexpr std::string_view kSandboxes =
    "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes";
constexpr std::string_view kPods = "/api/v1/namespaces/default/pods";

std::string e2b_request(std::string_view method, std::string_view target, const std::string& key,
                        std::string_view body) {
  return fmt::format(
      "{} {} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {}\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n\r\n{}",
      method, target, key, body.size(), body);
}

// The value of a member of a flat answer, whose texts need no escapes.
std::string_view text_in(std::string_view json, std::string_view name) {
  const std::string before = fmt::format("\"{}\":\"", name);
  const std::size_t at = json.find(before);
  if (at == std::string_view::npos) fail(Code::internal, "'{}' has no {}", json, name);
  const std::size_t begin = at + before.size();
  return json.substr(begin, json.find('"', begin) - begin);
}

std::string first_command(std::string_view id, std::string_view token) {
  constexpr std::string_view kMessage = R"({"process":{"cmd":"/noop","cwd":"/"},"stdin":false})";
  std::string envelope(5, '\0');
  envelope[4] = static_cast<char>(kMessage.size());
  return fmt::format(
      "POST /process.Process/Start HTTP/1.1\r\nHost: 127.0.0.1\r\nE2b-Sandbox-Id: {}\r\n"
      "E2b-Sandbox-Port: 49983\r\nX-Access-Token: {}\r\nContent-Type: application/connect+json\r\n"
      "Connect-Protocol-Version: 1\r\nContent-Length: {}\r\n\r\n{}{}",
      id, token, envelope.size() + kMessage.size(), envelope, kMessage);
}

constexpr std::string_view kFirstOutput = "\"stdout\"";

std::string own_program(const char* name) {
  return std::filesystem::canonical("/proc/self/exe").parent_path() / name;
}

// Up to the end of a line, or of the input.
std::string read_line(int fd, Duration patience) {
  std::string line;
  char next = 0;
  const Deadline deadline = Deadline::after(patience);
  while (true) {
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, deadline.poll_milliseconds());
    check_interrupts();
    if (ready < 0 && errno != EINTR) throw_errno("wait for a line");
    if (deadline.passed()) fail(Code::timeout, "a program says nothing");
    if (ready <= 0) continue;
    if (::read(fd, &next, 1) != 1) return line;
    if (next == '\n') return line;
    line += next;
  }
}

}  // namespace

ServerProcess::ServerProcess(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {own_program("bench-server")};
  words.insert(words.end(), arguments.begin(), arguments.end());
  linux::Pipe pipe = linux::make_pipe();
  child_.emplace(words, CommandFds{.input = -1, .output = pipe.write.get()});
  pipe.write.reset();
  const std::string line = read_line(pipe.read.get(), kPatience);
  std::from_chars(line.data(), line.data() + line.size(), port_);
  if (port_ == 0) child_->wait();  // says why
  if (port_ == 0) fail(Code::unavailable, "bench-server did not start");
}

E2bEngine::E2bEngine()
    : up_({"--e2b-port", "0", "--e2b-warm", "0"}),
      key_(up_.e2b_key()),
      pool_(up_.kube(), kImage, BenchPool::For::e2b),
      api_(up_.kube().connect()) {}

void E2bEngine::set_pool(unsigned count) {
  size_ = count;
  pool_.set_size(count);
  wait_settled();
}

// Idle ones in the right number, and none that is anything else: neither somebody's nor going.
bool E2bEngine::is_settled() {
  const auto list = [&](std::string_view target) {
    return model::parse_json(api_.ask(up_.kube().request("GET", target))).value;
  };
  const model::Json sandboxes = list(kSandboxes);
  const auto* items = model::array_at(sandboxes, {"items"});
  const auto is_idle = [](const model::Json& sandbox) {
    return !model::label_of(sandbox, model::kPoolLabel).empty() &&
           model::is_condition_true(sandbox, "Ready");
  };
  if (items == nullptr || items->size() != size_ || !std::ranges::all_of(*items, is_idle))
    return false;
  const model::Json pods = list(kPods);
  const auto* all = model::array_at(pods, {"items"});
  return all != nullptr && all->size() == size_;
}

void E2bEngine::wait_settled() {
  const Moment begin = now();
  while (!is_settled()) {
    check_interrupts();
    if (now() - begin > kSettlePatience) fail(Code::timeout, "the pool does not come to rest");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  wait_for_rest();
}

RawCreates::RawCreates(E2bEngine& engine, unsigned most)
    : engine_(engine), crowd_(engine.port(), most), request_(request(engine.key())) {}

std::string RawCreates::request(const std::string& key) {
  return e2b_request(
      "POST", "/sandboxes", key,
      fmt::format(R"({{"templateID":"{}","timeout":300,"secure":true}})", kBenchPool));
}

std::vector<double> RawCreates::start(unsigned count) {
  return crowd_.talk(count, [&](unsigned, std::string_view body) -> std::optional<Exchange> {
    if (body.empty()) return Exchange{.request = request_};
    answer_bytes_ = body.size();
    made_.emplace_back(text_in(body, "sandboxID"));
    return {};
  });
}

void RawCreates::clear() {
  if (made_.empty()) return;
  // Each of a few ends its share.
  constexpr unsigned kAtOnce = 4;
  std::size_t next = 0;
  const auto count = static_cast<unsigned>(std::min<std::size_t>(made_.size(), kAtOnce));
  crowd_.talk(std::min(count, crowd_.size()),
              [&](unsigned, std::string_view) -> std::optional<Exchange> {
                if (next == made_.size()) return {};
                const std::string target = "/sandboxes/" + made_[next++];
                return Exchange{.request = e2b_request("DELETE", target, engine_.key(), "")};
              });
  made_.clear();
  engine_.wait_settled();
}

std::vector<double> RawFirstExecs::start(unsigned count) {
  std::vector<bool> runs(count);
  return creates_.crowd_.talk(
      count, [&](unsigned index, std::string_view body) -> std::optional<Exchange> {
        if (body.empty()) return Exchange{.request = creates_.request_};
        if (runs[index]) return {};
        runs[index] = true;
        creates_.answer_bytes_ = body.size();
        creates_.made_.emplace_back(text_in(body, "sandboxID"));
        return Exchange{
            .request = first_command(creates_.made_.back(), text_in(body, "envdAccessToken")),
            .stop_at = kFirstOutput};
      });
}

EchoStarts::EchoStarts(const std::string& key, std::size_t answer_bytes, unsigned most)
    : server_({"echo", "201", std::to_string(answer_bytes)}),
      crowd_(server_.port(), most),
      request_(RawCreates::request(key)) {}

std::vector<double> EchoStarts::start(unsigned count) {
  return crowd_.talk(count, [&](unsigned, std::string_view body) -> std::optional<Exchange> {
    if (body.empty()) return Exchange{.request = request_};
    return {};
  });
}

FloorStarts::FloorStarts(const std::string& key, std::size_t answer_bytes)
    : server_({"floor", std::to_string(answer_bytes), own_program("bench-noop")}),
      crowd_(server_.port(), 1),
      create_(RawCreates::request(key)),
      // As long as those of a real one.
      command_(first_command(std::string(21, 'i'), std::string(64, 't'))) {}

std::vector<double> FloorStarts::start(unsigned count) {
  bool runs = false;
  return crowd_.talk(count, [&](unsigned, std::string_view body) -> std::optional<Exchange> {
    if (body.empty()) return Exchange{.request = create_};
    if (std::exchange(runs, true)) return {};
    return Exchange{.request = command_, .stop_at = kFirstOutput};
  });
}

std::vector<double> CommandStarts::start(unsigned count) {
  struct Command {
    std::vector<std::string> words;
    linux::Pipe pipe = linux::make_pipe();
    Moment begin = {};
    std::optional<Child> child = {};
  };
  linux::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) throw_errno("make an epoll");
  std::vector<Command> commands(count);
  std::vector<double> times(count);
  for (unsigned i = 0; i < count; ++i) {
    commands[i].words = subject_->cycle_words();
    epoll_event event{.events = EPOLLIN, .data = {.u32 = i}};
    ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, commands[i].pipe.read.get(), &event);
  }
  for (Command& each : commands) {
    each.begin = now();
    each.child.emplace(each.words, CommandFds{.input = -1, .output = each.pipe.write.get()});
    each.pipe.write.reset();
  }
  for (unsigned waiting = count; waiting > 0; --waiting) {
    epoll_event event{};
    const int ready = ::epoll_wait(epoll.get(), &event, 1,
                                   static_cast<int>(kPatience / std::chrono::milliseconds(1)));
    check_interrupts();
    if (ready <= 0) fail(Code::timeout, "{} commands say nothing", waiting);
    Command& command = commands[event.data.u32];
    times[event.data.u32] = us_between(command.begin, now());
    ::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, command.pipe.read.get(), nullptr);
  }
  for (Command& each : commands) each.child->wait();  // and says so if it wrote nothing
  return times;
}

SdkStarts::SdkStarts(E2bEngine& engine, const std::vector<std::string>& program) : engine_(engine) {
  const std::string url = fmt::format("http://127.0.0.1:{}", engine.port());
  std::vector<std::string> words = {find_program("env"),
                                    "-u",
                                    "E2B_DOMAIN",
                                    "E2B_API_URL=" + url,
                                    "E2B_SANDBOX_URL=" + url,
                                    "E2B_API_KEY=" + engine.key(),
                                    fmt::format("BENCH_TEMPLATE={}", kBenchPool)};
  words.insert(words.end(), program.begin(), program.end());
  linux::Pipe input = linux::make_pipe();
  linux::Pipe output = linux::make_pipe();
  child_.emplace(words, CommandFds{.input = input.read.get(), .output = output.write.get()});
  input_ = std::move(input.write);
  output_ = std::move(output.read);
}

std::string SdkStarts::ask(unsigned count) {
  constexpr Duration kSdkPatience = std::chrono::minutes(1);
  linux::write_all(input_.get(), fmt::format("{}\n", count));
  std::string line = read_line(output_.get(), kSdkPatience);
  if (line.empty()) child_->wait();  // says why
  return line;
}

std::vector<double> SdkStarts::start(unsigned count) {
  const std::string line = ask(count);
  std::vector<double> times;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    times.push_back(parse_figure(line.substr(at, end - at)));
    at = end + 1;
  }
  if (times.size() != count) fail(Code::internal, "the SDK's program answered '{}'", line);
  return times;
}

void SdkStarts::clear() {
  if (ask(0) != "0") fail(Code::internal, "the SDK's program did not end its sandboxes");
  engine_.wait_settled();
}

}  // namespace hearth::bench
