#include "gateway/account.h"

#include "base/id.h"

namespace hearth::gateway {
namespace {

// The client left before there was an answer, or was cut off. nginx has it so.
constexpr unsigned kNoAnswer = 499;

std::string_view name_of(Dialect dialect) {
  switch (dialect) {
    case Dialect::control:
      return "api";
    case Dialect::health:
      return "health";
    case Dialect::e2b:
      return "e2b";
    case Dialect::router:
      return "router";
    case Dialect::signature:
      return "signature";
  }
  return "";
}

}  // namespace

void Account::begin() {
  if (has_begun_) return;
  has_begun_ = true;
  began_ = std::chrono::steady_clock::now();
  method_ = {};
  up_ = down_ = 0;
}

void Account::note(const AccessRules& rules, const http::HeadView& head, const Target& target) {
  if (lines_ == nullptr || note_) return;
  note_ = std::make_unique<Note>();
  note_->path = target.path.substr(0, kMostPathBytes);
  const std::string_view key = head.value("X-API-Key");
  if (!key.empty() && rules.key_owner) note_->owner = rules.key_owner(key);
}

void Account::enter() {
  if (is_in_flight_) return;
  is_in_flight_ = true;
  meter_.began();
}

void Account::first_byte() {
  if (space_ != nullptr) meter_.first_byte(std::chrono::steady_clock::now() - began_);
}

void Account::moved(std::uint64_t up, std::uint64_t down) {
  up_ += up;
  down_ += down;
  meter_.moved(up, down);
}

void Account::end(const Ending& ending) {
  if (!has_begun_) return;
  has_begun_ = false;
  if (!is_in_flight_ && lines_ == nullptr) return;
  const unsigned status = ending.status != 0 ? ending.status : kNoAnswer;
  const Duration took = std::chrono::steady_clock::now() - began_;
  if (is_in_flight_) {
    meter_.answered(space_, method_, status, took);
    meter_.ended();
    is_in_flight_ = false;
  }
  if (lines_ != nullptr) log(ending, status, took);
  note_.reset();
}

void Account::log(const Ending& ending, unsigned status, Duration took) {
  AccessRecord record;
  record.began = std::chrono::system_clock::now() - took;
  record.took = took;
  record.route = name_of(ending.dialect);
  // What is no id may be anything that a client put in its place.
  if (is_label(ending.id)) record.sandbox = ending.id;
  record.port = ending.port;
  record.method = method_;
  record.status = status;
  record.bytes_in = up_;
  record.bytes_out = down_;
  record.peer = ending.peer;
  record.is_cut = ending.is_cut;
  if (ending.route != nullptr) record.ns = ending.route->key.ns;
  if (note_) {
    record.path = note_->path;
    record.key = note_->owner.id;
    if (ending.route == nullptr) record.ns = note_->owner.ns;
  }
  lines_->add(record);
}

}  // namespace hearth::gateway
