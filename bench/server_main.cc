// bench-server: the servers that the page `e2b` needs, each in a process of its own.
//
//   bench-server echo STATUS BYTES     answers everybody the same
//   bench-server floor BYTES PROGRAM   the least that creates and first commands cost (floor.h)
//   bench-server gateway FOLDER        our gateway, whose one sandbox is this machine
//
// Prints its port, and goes on until it is killed or its parent ends.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "bench/floor.h"
#include "bench/proxy_gateway.h"
#include "bench/small_server.h"

namespace {

void say_port(unsigned port) {
  std::printf("%u\n", port);
  std::fflush(stdout);
}

[[noreturn]] void serve(hearth::bench::SmallServer::Answer answer) {
  hearth::bench::SmallServer server(std::move(answer));
  say_port(server.port());
  server.serve();
}

int serve(int argc, char** argv) {
  using namespace hearth::bench;
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "echo" && argc == 4)
    serve(SmallServer::echo(static_cast<unsigned>(std::stoul(argv[2])), std::stoul(argv[3])));
  if (verb == "floor" && argc == 4) {
    Floor floor(std::stoul(argv[2]), argv[3]);
    serve([&](std::string_view request) { return floor.answer(request); });
  }
  if (verb == "gateway" && argc == 3) {
    const ProxyGateway gateway(argv[2]);
    say_port(gateway.port());
    while (true) ::pause();
  }
  std::fputs("usage: bench-server echo STATUS BYTES | floor BYTES PROGRAM | gateway FOLDER\n",
             stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return serve(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-server: %s\n", error.what());
    return 1;
  }
}
