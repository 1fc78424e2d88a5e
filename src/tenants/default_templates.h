// The templates that everybody's first program asks for, `base` and `code-interpreter-v1`, and the
// pools that keep some of their sandboxes ready. In the namespace `default`, for every team.
#pragma once

#include <cstdint>
#include <string>

#include "client/client.h"

namespace hearth::tenants {

struct DefaultTemplates {
  // "host" is the machine itself; of another one, commands run as whoever that image says.
  std::string image = "host";
  // How many of `base` wait; of the other one it is a quarter. 0: none.
  std::uint32_t warm = 8;
};

// Makes those that are missing, and brings those up to date that are as an earlier call left them.
// What somebody else has changed since (metadata.generation tells) stays as it is. Throws
// StatusError.
void make_default_templates(client::Client& client, const DefaultTemplates& wanted);

}  // namespace hearth::tenants
