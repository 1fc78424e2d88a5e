#include "escape/testing.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/error.h"

namespace hearth::escape {
namespace {

constexpr const char* kSong = "untouched";

}  // namespace

std::ostream& operator<<(std::ostream& out, const Report& report) {
  std::istringstream lines(report.text);
  std::string holes;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("HOLE") != std::string::npos) holes += line + "\n";
  }
  return out << "\n" << (holes.empty() ? report.text : holes);
}

void bring_payload(runtime::Runtime& runtime, const std::string& id) {
  const std::string path = fmt::format("{}/escape-payload", std::getenv("HEARTH_BIN"));
  const linux::Fd program = linux::open_file(path, O_RDONLY);
  guest::ExecRequest request;
  request.command = {"/bin/sh", "-c", fmt::format("cat > {0} && chmod 755 {0}", kPayload)};
  guest::Connection connection(runtime.connect(id));
  const guest::Exited exited =
      connection.run(request, {.input = program.get(), .output = -1, .error = -1});
  if (exited.status.code != 0) fail(Code::internal, "the payload did not get into '{}'", id);
}

Report attempt(runtime::Runtime& runtime, const std::string& id, std::vector<std::string> words,
               const std::string& user) {
  guest::ExecRequest request;
  request.command = std::move(words);
  request.command.insert(request.command.begin(), kPayload);
  request.user = user;
  request.timeout_milliseconds = 60'000;
  const runtime::Outcome outcome = runtime::run_in(runtime.connect(id), request);
  Report report{.text = outcome.output + outcome.error};
  const linux::ExitStatus status = outcome.exited.status;
  if (status.signal != 0 || status.code > 2)
    report.text += fmt::format("\nended with {}, signal {}", status.code, status.signal);
  else
    report.verdict = static_cast<Verdict>(status.code);
  return report;
}

Canary::Canary() {
  char path[] = "/tmp/escape-canary-XXXXXX";
  if (::mkdtemp(path) == nullptr) throw_errno("make a folder for a canary");
  folder_ = path;
  std::ofstream(file()) << kSong;
}

Canary::~Canary() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

bool Canary::sings() const {
  std::ifstream in(file());
  std::string text;
  std::getline(in, text);
  return text == kSong && std::distance(fs::directory_iterator(folder_), {}) == 1;
}

}  // namespace hearth::escape
