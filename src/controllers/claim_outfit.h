// What a claim brings along for a warm sandbox: from its spec, and the Secrets and ConfigMaps that
// it names, to outfits for the guest (pool/outfit.h).
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "pool/outfit.h"

namespace hearth::controllers {

using model::Json;

// Whether the claim brings anything along that its sandbox's pod was not made with.
bool has_outfit(const Json& claim);
// Whether a running pod could get all of it: volumes have a place to be mounted at and hide none of
// the template's, variables are for containers that run.
bool is_outfit_for_warm(const Json& claim, const Json& sandbox_template);

// A Secret that claims may name says so with this label: who may claim need not be somebody who may
// read every Secret of the namespace.
inline constexpr std::string_view kClaimableLabel = "hearth.dev/claimable";

// The object of that kind and name in the claim's namespace.
using ReadObject =
    std::function<std::optional<Json>(const client::ResourceId& kind, std::string_view name)>;

// Throws Error where a Secret or ConfigMap is missing, not for claims, or lacks the key. Texts of
// errors never hold what is in them.
void check_references(const Json& claim, const ReadObject& read);
// One outfit for each container concerned. `sandbox` is the one that gets it.
std::vector<pool::Outfit> outfits_of(const Json& claim, const Json& sandbox,
                                     const ReadObject& read);

// The PersistentVolumeClaims that the outfits' volumes need.
std::vector<Json> outfit_volume_claims(const Json& claim, const Json& sandbox);

// What of an error's text may be shown: all of it, unless it holds something of the outfits.
std::string shown_text(std::string_view error, const std::vector<pool::Outfit>& outfits);

}  // namespace hearth::controllers
