#include "doors.h"

#include <malloc.h>

#include <string_view>
#include <utility>

#include "envd/envd.h"
#include "http/head.h"
#include "interpreter/interpreter.h"
#include "runtimeapi/runtimeapi.h"
#include "sandboxd/sandboxd.h"
#include "serve/server.h"

namespace hearth {
namespace {

// For surfaces whose clients know no tokens of their own: what stands before them (a gateway) adds
// the sandbox's. Whether they are there may be asked by anybody, as probes do.
serve::Handler guarded(serve::Handler handler, guest::Core& core, std::string_view probe) {
  return [handler = std::move(handler), &core, probe](serve::Exchange& exchange) {
    const std::string token = core.settings().token;
    const http::Request& request = exchange.request();
    const bool is_probe = request.method == "GET" && request.path == probe;
    if (!token.empty() && !is_probe &&
        !http::equal_constant_time(request.headers.value("X-Access-Token"), token)) {
      return exchange.respond(http::render_json_problem(
          {.status = 401,
           .code = Code::unauthenticated,
           .message = "this sandbox asks for its token in the header X-Access-Token"}));
    }
    handler(exchange);
  };
}

serve::Handler handler_for(guest::Surface surface, guest::Core& core) {
  switch (surface) {
    case guest::Surface::envd:
      return envd::make_handler(core);
    case guest::Surface::interpreter:
      return interpreter::make_handler(core);
    case guest::Surface::runtime_api:
      return guarded(runtimeapi::make_handler(core), core, "/");
    case guest::Surface::sandboxd:
      break;
  }
  return guarded(sandboxd::make_handler(core), core, "/v1/health");
}

}  // namespace

void prepare_doors() {
  http::Head head;
  http::parse_request_head("GET / HTTP/1.1\r\nHost: nobody\r\n\r\n", {}, head);
}

void open_doors(std::vector<guest::Door> doors, guest::Core& core) {
  // Every arena of the allocator costs memory that its threads alone can use again.
  ::mallopt(M_ARENA_MAX, 2);
  std::vector<serve::Entrance> entrances;
  for (guest::Door& door : doors) {
    serve::Entrance& entrance = entrances.emplace_back();
    entrance.listen = std::move(door.listen);
    entrance.handler = handler_for(door.surface, core);
    if (door.surface == guest::Surface::envd)
      entrance.rehearsal = [&core] { return envd::make_rehearsal(core); };
  }
  // For as long as the sandbox lives: its end is the process's.
  static const serve::Server server(std::move(entrances));
}

}  // namespace hearth
