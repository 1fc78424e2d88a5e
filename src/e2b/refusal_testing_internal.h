// For fuzzers of what clients send: it is read, or refused with words that they know.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "base/error.h"
#include "e2b/answers.h"

namespace hearth::e2b {

inline void check(bool holds) {
  if (!holds) std::abort();
}

// Whatever is thrown is a refusal with one of the statuses, or Error(invalid).
template <typename F>
void attempt(std::initializer_list<unsigned> statuses, F act) {
  try {
    act();
  } catch (const Refusal& refusal) {
    check(std::ranges::find(statuses, refusal.status()) != statuses.end());
  } catch (const Error& error) {
    check(error.code() == Code::invalid);
  }
}

}  // namespace hearth::e2b
