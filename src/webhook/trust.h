// How a cluster comes to trust our conversion webhook: an identity in a Secret, which all replicas
// share, and its authority in the CRDs that are converted by our Service.
//
// All of it may be done again at any time, by several at once. Throws StatusError and Error.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "client/client.h"
#include "model/meta.h"
#include "pki/serving.h"

namespace hearth::webhook {

// That of agent-sandbox-controller, in the Service's namespace. Theirs is taken over.
inline constexpr char kSecretName[] = "agent-sandbox-webhook-certs";

// The names that a Service is asked by, the one of the API server's first.
std::vector<std::string> names_of_service(const model::Key& service,
                                          const std::string& cluster_domain);

// The Secret's identity, for a server of these names; what is missing or comes near its end is
// made and written first.
pki::Serving share_identity(client::Client& client, const std::string& ns,
                            const std::vector<std::string>& names, Time now);

// Whether Sandboxes are converted by this Service. False where the CRD is not there, or is not
// ours to read.
bool is_converted_by(client::Client& client, const model::Key& service);

// Writes the authority into each CRD of ours that is converted by this Service. Returns a sentence
// for each that is not: somebody else's is left alone.
std::vector<std::string> trust_authority(client::Client& client, const model::Key& service,
                                         const std::string& authority);

}  // namespace hearth::webhook
