// What POST /sandboxes and POST /v2/sandboxes ask for, checked as far as the body alone tells.
#pragma once

#include <cstdint>
#include <string>

#include "e2b/body.h"
#include "e2b/network_wish.h"

namespace hearth::e2b {

enum class Generation {
  v1,  // clients up to 2.45: open unless `secure`, 15 s
  v2,  // since 2.51: always secure, 300 s
};

struct CreateRequest {
  std::string template_reference;
  std::int64_t timeout_seconds = 0;
  bool pauses = false;        // when its time is over; false: it is killed
  bool pauses_memory = true;  // then; false: its files alone stay
  bool wakes = false;         // when somebody knocks
  bool is_secure = true;
  NetworkWish network;
  Texts metadata;
  Texts environment;
};

// Throws Error(invalid), and Refusal(501) for what is not offered.
CreateRequest parse_create(const Body& body, Generation generation);

}  // namespace hearth::e2b
