#include <array>
#include <utility>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/error.h"
#include "model/status.h"
#include "net/stream.h"
#include "remote/command_internal.h"
#include "remote/descriptor_internal.h"
#include "remote/negotiate_internal.h"
#include "remote/pod_internal.h"
#include "remote/portforward_internal.h"
#include "remote/remote.h"
#include "remote/run_internal.h"

namespace hearth::remote {

namespace asio = boost::asio;
using namespace boost::asio::experimental::awaitable_operators;

namespace {

constexpr std::size_t kPiece = std::size_t{32} << 10;

// As kubelets say it.
[[noreturn]] void throw_not_running(std::string_view container) {
  throw model::StatusError({.code = 500,
                            .reason = "InternalError",
                            .message = fmt::format("container not found (\"{}\")", container)});
}

Container expect_container(const model::Json& pod, std::string_view name) {
  auto container = find_container(pod, name);
  if (!container) throw_not_running(name);
  return *std::move(container);
}

asio::awaitable<void> serve_command(net::Request request, net::Stream& stream, CommandPlan plan,
                                    Backend& backend) {
  if (requested_upgrade(request, stream) == Upgrade::websocket) {
    return serve_command_websocket(std::move(request), stream, std::move(plan), backend);
  }
  return serve_command_spdy(std::move(request), stream, std::move(plan), backend);
}

CommandPlan make_plan(const net::Request& request, const net::Stream& stream,
                      const model::Json& pod) {
  const Query query(request);
  const std::string name = choose_container(query, pod);
  expect_node(pod);
  requested_upgrade(request, stream);
  CommandPlan plan;
  plan.streams = parse_streams(query);
  plan.command = query.all("command");
  plan.container = expect_container(pod, name);
  return plan;
}

net::Response log_head() {
  net::Response head;
  head.headers.add("Content-Type", "text/plain");
  return head;
}

// Passes on at most so many bytes; ends early when the client leaves.
asio::awaitable<void> pass_log(net::Stream& stream, LogFeed& feed,
                               std::optional<std::uint64_t> limit) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  Descriptor from(executor, linux::duplicate(feed.fd()));
  std::array<char, kPiece> piece;
  std::uint64_t left = limit.value_or(UINT64_MAX);
  while (left > 0) {
    const auto got = from.try_read(std::span(piece).first(std::min<std::uint64_t>(left, kPiece)));
    if (got == 0U) break;
    if (got) {
      left -= *got;
      co_await stream.write({piece.data(), *got});
      continue;
    }
    const auto first = co_await (from.wait_readable() || stream.wait_disconnect());
    if (first.index() == 1) break;
  }
}

}  // namespace

asio::awaitable<void> serve_exec(net::Request request, net::Stream& stream, const model::Json& pod,
                                 Backend& backend) {
  CommandPlan plan = make_plan(request, stream, pod);
  if (plan.command.empty()) model::throw_bad_request("you must specify at least one command");
  return serve_command(std::move(request), stream, std::move(plan), backend);
}

asio::awaitable<void> serve_attach(net::Request request, net::Stream& stream,
                                   const model::Json& pod, Backend& backend) {
  CommandPlan plan = make_plan(request, stream, pod);
  plan.attach = true;
  return serve_command(std::move(request), stream, std::move(plan), backend);
}

asio::awaitable<void> serve_portforward(net::Request request, net::Stream& stream,
                                        const model::Json& pod, Backend& backend) {
  const Query query(request);
  expect_node(pod);
  const Upgrade upgrade = requested_upgrade(request, stream);
  auto container = find_any_container(pod);
  if (!container) {
    throw model::StatusError(
        {.code = 500,
         .reason = "InternalError",
         .message = fmt::format("pod {} has no container that runs", pod_name(pod))});
  }
  return serve_forward(std::move(request), stream, upgrade, query.all("ports"),
                       *std::move(container), backend);
}

namespace {

asio::awaitable<void> respond_without_log(net::Stream& stream) {
  co_await stream.respond(log_head());
}

asio::awaitable<void> serve_log_of(net::Stream& stream, Container container, LogQuery log,
                                   Backend& backend) {
  std::unique_ptr<LogFeed> feed =
      co_await run_blocking(backend, [&] { return backend.open_log(container, log.options); });
  co_await stream.write_head(log_head());
  co_await pass_log(stream, *feed, log.limit_bytes);
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): it is a handler like the others
asio::awaitable<void> serve_log(net::Request request, net::Stream& stream, const model::Json& pod,
                                Backend& backend) {
  const Query query(request);
  const std::string name = choose_container(query, pod);
  LogQuery log = parse_log_query(query, pod);
  if (!has_node(pod)) return respond_without_log(stream);
  auto container = find_container(pod, name);
  if (!container) {
    model::throw_bad_request(fmt::format("container \"{}\" in pod \"{}\" is waiting to start: {}",
                                         name, pod_name(pod), waiting_reason(pod, name)));
  }
  return serve_log_of(stream, *std::move(container), std::move(log), backend);
}

}  // namespace hearth::remote
