#include "runtime/id_ranges.h"

#include "base/error.h"

namespace hearth::runtime {

linux::IdRange ids_of_slot(std::uint32_t slot) {
  return {.first = kFirstId + slot * kIdsPerSandbox, .count = kIdsPerSandbox};
}

std::uint32_t IdRanges::acquire() {
  return slots_.with([&](Slots& slots) {
    if (!slots.released.empty()) {
      const std::uint32_t slot = slots.released.back();
      slots.released.pop_back();
      slots.used.insert(slot);
      return slot;
    }
    while (slots.next < kIdSlots) {
      const std::uint32_t slot = (seed_ + slots.next++) % kIdSlots;
      if (slots.used.insert(slot).second) return slot;
    }
    fail(Code::exhausted, "all {} ranges of user ids are in use", kIdSlots);
  });
}

void IdRanges::mark_used(std::uint32_t slot) {
  slots_.with([&](Slots& slots) { slots.used.insert(slot); });
}

void IdRanges::release(std::uint32_t slot) {
  slots_.with([&](Slots& slots) {
    if (slots.used.erase(slot) != 0) slots.released.push_back(slot);
  });
}

int IdRanges::mapping_fd(std::uint32_t slot) {
  const int known = slots_.with([&](Slots& slots) {
    const auto found = slots.mappings.find(slot);
    return found == slots.mappings.end() ? -1 : found->second.get();
  });
  if (known >= 0) return known;
  linux::Fd made = linux::make_user_namespace(ids_of_slot(slot));
  return slots_.with([&](Slots& slots) {
    return slots.mappings.try_emplace(slot, std::move(made)).first->second.get();
  });
}

}  // namespace hearth::runtime
