// The conversation: the client's words go into the command's input, what the command writes goes to
// the client, each piece only when the one before was taken. Nothing is queued here, so a slow side
// makes the other one wait.
#include <unistd.h>

#include <array>
#include <utility>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/error.h"
#include "model/json.h"
#include "net/workers.h"
#include "remote/command_internal.h"
#include "remote/descriptor_internal.h"
#include "remote/run_internal.h"

namespace hearth::remote {

namespace asio = boost::asio;
using namespace boost::asio::experimental::awaitable_operators;

namespace {

// What kubectl reads at once, and half of what a pipe holds.
constexpr std::size_t kPiece = std::size_t{32} << 10;

// What a command that has ended may have left behind in a pipe; more comes from something that it
// left behind running, for which nobody waits.
constexpr std::size_t kMostLeft = std::size_t{1} << 20;

class Conversation {
 public:
  Conversation(const asio::any_io_executor& executor, CommandWire& wire, Command command,
               bool is_attached)
      : wire_(wire),
        life_(std::move(command.life)),
        is_attached_(is_attached),
        input_(executor, std::move(command.input)),
        output_(executor, std::move(command.output)),
        error_(executor, std::move(command.error)),
        alarm_(executor, linux::duplicate(life_->fd())),
        changed_(executor),
        tasks_(executor),
        pumps_(executor) {}

  asio::awaitable<void> run();

 private:
  asio::awaitable<void> hear_client();
  asio::awaitable<void> obey(ClientWord word);
  asio::awaitable<void> pass_input(std::string_view bytes);
  void end_input();
  void resize(linux::WindowSize size);
  asio::awaitable<void> pump(Descriptor& from, Channel to);
  asio::awaitable<void> watch_life();
  asio::awaitable<bool> hear_life();
  void end(std::optional<Verdict> verdict);

  CommandWire& wire_;
  std::unique_ptr<Life> life_;
  bool is_attached_;
  Descriptor input_;
  Descriptor output_;
  Descriptor error_;
  Descriptor alarm_;  // life_'s own, and readable when it has something to say
  Bell changed_;
  bool is_over_ = false;
  bool is_client_gone_ = false;
  std::optional<Verdict> verdict_;  // none: the client left first
  Tasks tasks_;
  Tasks pumps_;
};

asio::awaitable<void> Conversation::run() {
  tasks_.start(hear_client());
  tasks_.start(watch_life());
  if (output_.is_open()) pumps_.start(pump(output_, Channel::output));
  if (error_.is_open()) pumps_.start(pump(error_, Channel::error));
  while (!is_over_) co_await changed_.wait();
  // What was written before the end is passed on before the verdict.
  co_await pumps_.wait();
  if (verdict_ && !is_client_gone_) {
    try {
      co_await wire_.conclude(*verdict_);
    } catch (const Error&) {
      // It left in the last moment.
    }
  }
  // Nothing of ours holds the command while goodbye is said.
  life_.reset();
  for (Descriptor* each : {&alarm_, &input_, &output_, &error_}) each->close();
  co_await wire_.close(tasks_);
}

void Conversation::end(std::optional<Verdict> verdict) {
  if (std::exchange(is_over_, true)) return;
  verdict_ = std::move(verdict);
  changed_.ring();
  output_.wake();
  error_.wake();
  input_.wake();
  alarm_.wake();
}

asio::awaitable<void> Conversation::hear_client() {
  try {
    while (true) {
      auto word = co_await wire_.read();
      if (!word) break;
      co_await obey(*std::move(word));
    }
  } catch (const std::exception&) {
    // Gone, or not speaking our protocol.
  }
  is_client_gone_ = true;
  end(std::nullopt);
  pumps_.cancel();
}

asio::awaitable<void> Conversation::obey(ClientWord word) {
  switch (word.kind) {
    case ClientWord::Kind::input:
      co_await pass_input(word.bytes);
      break;
    case ClientWord::Kind::input_end:
      end_input();
      break;
    case ClientWord::Kind::resize:
      resize(word.size);
      break;
    case ClientWord::Kind::nothing:
      break;
  }
}

asio::awaitable<void> Conversation::pass_input(std::string_view bytes) {
  while (!bytes.empty() && !is_over_ && input_.is_open()) {
    try {
      const std::size_t written = input_.try_write(bytes);
      bytes.remove_prefix(written);
      if (written > 0) continue;
    } catch (const Error&) {
      end_input();  // the command reads no more; the client may type on
      co_return;
    }
    // Nobody reads the connection meanwhile: a client that leaves must be noticed in another way.
    const auto first = co_await (input_.wait_writable() || wire_.wait_gone());
    if (first.index() == 1) fail(Code::unavailable, "the client left");
  }
}

void Conversation::end_input() {
  // The end of a terminal's input is a character that its user types; the descriptor stays for
  // what else may be done with it.
  if (input_.is_open() && ::isatty(input_.fd()) == 0) input_.close();
}

void Conversation::resize(linux::WindowSize size) {
  Descriptor& terminal = input_.is_open() ? input_ : output_;
  if (!terminal.is_open() || ::isatty(terminal.fd()) == 0) return;
  try {
    linux::set_window_size(terminal.fd(), size.rows, size.cols);
  } catch (const Error&) {
    // It has ended meanwhile.
  }
}

asio::awaitable<void> Conversation::pump(Descriptor& from, Channel to) {
  std::array<char, kPiece> piece;
  std::size_t left_behind = 0;
  try {
    while (left_behind < kMostLeft) {
      const auto got = from.try_read(piece);
      if (got == 0U) co_return;
      if (!got) {
        if (is_over_) co_return;
        co_await from.wait_readable();
        continue;
      }
      if (is_over_) {
        if (!verdict_) co_return;
        left_behind += *got;
      }
      co_await wire_.write(to, {piece.data(), *got});
    }
  } catch (const Error&) {
    end(std::nullopt);
  }
}

asio::awaitable<void> Conversation::watch_life() {
  try {
    while (!is_over_) {
      if (!co_await hear_life()) co_await alarm_.wait_readable();
    }
  } catch (const Error& error) {
    end(Verdict{.exit_code = 0, .failure = error.what()});
  }
}

// False when there is nothing to hear yet.
asio::awaitable<bool> Conversation::hear_life() {
  auto event = life_->next();
  if (std::holds_alternative<std::monostate>(event)) co_return false;
  if (const auto* said = std::get_if<Said>(&event)) {
    try {
      co_await wire_.write(said->is_error ? Channel::error : Channel::output, said->bytes);
    } catch (const Error&) {
      end(std::nullopt);
    }
    co_return true;
  }
  // Whoever only looked on is not told how it ended.
  const int exit_code = is_attached_ ? 0 : std::get<Ended>(event).exit_code;
  end(Verdict{.exit_code = exit_code, .failure = {}});
  co_return true;
}

Command begin(const CommandPlan& plan, Backend& backend) {
  if (plan.attach) return backend.attach(plan.container, plan.streams);
  return backend.start(plan.container, plan.command, plan.streams);
}

std::uint16_t dimension(const model::Json& json, std::string_view name) {
  const auto number = model::number_at(json, {name});
  return number && *number > 0 && *number <= UINT16_MAX ? static_cast<std::uint16_t>(*number) : 0;
}

}  // namespace

std::optional<linux::WindowSize> parse_window_size(std::string_view json) {
  try {
    const model::Json value = model::parse_json(json).value;
    const linux::WindowSize size{.rows = dimension(value, "Height"),
                                 .cols = dimension(value, "Width")};
    if (size.rows == 0 || size.cols == 0) return std::nullopt;
    return size;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string status_text(const Verdict& verdict) {
  model::JsonObject status;
  status["metadata"] = model::JsonObject();
  const bool is_success = verdict.failure.empty() && verdict.exit_code == 0;
  status["status"] = is_success ? "Success" : "Failure";
  if (!verdict.failure.empty()) {
    status["message"] = fmt::format(
        "Internal error occurred: error executing command in container: {}", verdict.failure);
    status["reason"] = "InternalError";
    status["code"] = 500;
  } else if (!is_success) {
    status["message"] = fmt::format(
        "command terminated with non-zero exit code: command terminated with exit code {}",
        verdict.exit_code);
    status["reason"] = "NonZeroExitCode";
    const model::JsonObject cause = {{"reason", "ExitCode"},
                                     {"message", std::to_string(verdict.exit_code)}};
    status["details"] = model::JsonObject({{"causes", model::JsonArray({cause})}});
  }
  return model::to_text(status);
}

asio::awaitable<void> converse(CommandWire& wire, CommandPlan plan, Backend& backend) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  co_await outlive_cancellation();
  Command command;
  std::string failure;
  try {
    command = co_await run_blocking(backend, [&] { return begin(plan, backend); });
  } catch (const Error& error) {
    failure = error.what();
  }
  if (failure.empty()) {
    Conversation conversation(executor, wire, std::move(command), plan.attach);
    co_await conversation.run();
    co_return;
  }
  Tasks nobody(executor);
  try {
    co_await wire.conclude({.exit_code = 0, .failure = failure});
  } catch (const Error&) {
    // It has left.
  }
  co_await wire.close(nobody);
}

}  // namespace hearth::remote
