// What blocks is done by the backend's workers.
#pragma once

#include <type_traits>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "net/workers.h"
#include "remote/backend.h"

namespace hearth::remote {

template <typename F>
boost::asio::awaitable<std::invoke_result_t<F&>> run_blocking(Backend& backend, F work) {
  net::Workers* workers = backend.workers();
  if (workers == nullptr) co_return work();
  co_return co_await workers->run(std::move(work));
}

}  // namespace hearth::remote
