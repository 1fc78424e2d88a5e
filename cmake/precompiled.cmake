# Headers of others that nearly every file includes, parsed once instead of some hundreds of times.
#
# They save compile time and nothing else: a file still includes what it uses. The test `headers` forgives
# no header a missing #include, and the preset `asan` compiles every file without them.
set(precompiled_base
  <algorithm> <array> <atomic> <cerrno> <charconv> <chrono> <condition_variable> <cstddef> <cstdint> <cstdio> <cstdlib>
  <cstring> <deque> <exception> <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional> <set> <span>
  <stdexcept> <stop_token> <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector>
  <fcntl.h> <poll.h> <signal.h> <sys/socket.h> <sys/stat.h> <sys/wait.h> <unistd.h>
  <fmt/format.h> <boost/json.hpp>)
# For the rooms that see a socket as Asio does.
set(precompiled_net ${precompiled_base}
  <boost/asio/as_tuple.hpp> <boost/asio/awaitable.hpp> <boost/asio/bind_cancellation_slot.hpp> <boost/asio/buffer.hpp>
  <boost/asio/co_spawn.hpp> <boost/asio/detached.hpp> <boost/asio/io_context.hpp> <boost/asio/ip/tcp.hpp>
  <boost/asio/post.hpp> <boost/asio/steady_timer.hpp> <boost/asio/strand.hpp> <boost/asio/this_coro.hpp>
  <boost/asio/use_awaitable.hpp>)

# hearth_precompile(TARGET OWNER header...): the first target of a kind owns what all of its kind share.
# A kind is what the compiler insists on: the same headers, optimisation, and sort of code (library or program).
function(hearth_precompile target owner)
  if(HEARTH_PCH AND target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  elseif(HEARTH_PCH)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()
