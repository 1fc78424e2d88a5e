#include "doors.h"

#include <malloc.h>

#include "runtimeapi/runtimeapi.h"
#include "sandboxd/sandboxd.h"
#include "serve/server.h"

namespace hearth {
namespace {

serve::Handler handler_for(guest::Surface surface, guest::Core& core) {
  if (surface == guest::Surface::runtime_api) return runtimeapi::make_handler(core);
  if (surface == guest::Surface::sandboxd) return sandboxd::make_handler(core);
  return [surface](serve::Exchange& exchange) {
    exchange.respond(http::render_json_problem(
        {.status = 501,
         .code = Code::unavailable,
         .message = fmt::format("surface {} is not built in", static_cast<int>(surface))}));
  };
}

}  // namespace

void open_doors(std::vector<guest::Door> doors, guest::Core& core) {
  // Every arena of the allocator costs memory that its threads alone can use again.
  ::mallopt(M_ARENA_MAX, 2);
  std::vector<serve::Entrance> entrances;
  for (guest::Door& door : doors) {
    entrances.push_back(
        {.listen = std::move(door.listen), .handler = handler_for(door.surface, core)});
  }
  // For as long as the sandbox lives: its end is the process's.
  static const serve::Server server(std::move(entrances));
}

}  // namespace hearth
