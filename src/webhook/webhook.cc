#include "webhook/webhook.h"

#include <chrono>

#include "base/cancel.h"
#include "base/error.h"
#include "base/log.h"
#include "webhook/trust.h"

namespace hearth::webhook {
namespace {

constexpr Duration kBetweenLooks = std::chrono::minutes(1);
// A chain of certificates has a few KiB.
constexpr std::size_t kMostFile = 1 << 20;

}  // namespace

Webhook::Webhook(client::Client& client, const Clock& clock, Options options, linux::Fd socket)
    : client_(client), clock_(clock), options_(std::move(options)), server_(std::move(socket)) {
  look();
  looking_ = std::jthread([this](const std::stop_token& stop) {
    while (sleep_for(stop, kBetweenLooks)) look_again();
  });
}

// Shown before it is trusted: who trusts it may ask at once.
void Webhook::look() {
  if (!options_.certificate_file.empty()) {
    show({linux::read_file(options_.certificate_file, kMostFile),
          linux::read_file(options_.key_file, kMostFile)});
    return;
  }
  const pki::Serving serving =
      share_identity(client_, options_.service.ns,
                     names_of_service(options_.service, options_.cluster_domain), clock_.now());
  show(serving.server);
  for (const std::string& left : trust_authority(client_, options_.service, serving.authority))
    tell_once("a kind is not converted by this webhook", left);
}

void Webhook::show(const pki::Identity& identity) {
  if (identity.certificate == shown_.certificate && identity.key == shown_.key) return;
  server_.serve(identity);
  shown_ = identity;
}

void Webhook::look_again() {
  const std::lock_guard lock(mutex_);
  try {
    look();
  } catch (const Error& error) {
    tell_once("the conversion webhook could not be looked after", error.what());
  }
}

void Webhook::tell_once(const std::string& message, const std::string& reason) {
  if (told_.insert(message + reason).second) log::warning(message, {{"reason", reason}});
}

}  // namespace hearth::webhook
