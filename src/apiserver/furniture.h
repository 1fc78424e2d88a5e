// What is there before the first request: our CRDs, the namespaces everyone expects, default
// roles, and the Service that leads back here.
#pragma once

#include "apiserver/catalogue.h"
#include "apiserver/objects.h"
#include "store/store.h"

namespace hearth::apiserver {

// Makes the kinds of api/crds known: new ones are written, those of an older release replaced.
void put_definitions(Objects& objects, store::Store& store, const Catalogue& catalogue);

// Creates what is missing; leaves alone what is there.
void furnish(Objects& objects, store::Store& store, const Catalogue& catalogue);

}  // namespace hearth::apiserver
