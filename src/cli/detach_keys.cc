#include "cli/detach_keys.h"

namespace hearth::cli {
namespace {

constexpr char kCtrlP = 'p' & 0x1f;
constexpr char kCtrlQ = 'q' & 0x1f;

}  // namespace

std::string DetachKeys::pass(std::string_view typed) {
  std::string passed;
  for (const char key : typed) {
    if (detached_) break;
    if (half_ && key == kCtrlQ) {
      detached_ = true;
      break;
    }
    if (half_) passed += kCtrlP;
    half_ = key == kCtrlP;
    if (!half_) passed += key;
  }
  return passed;
}

}  // namespace hearth::cli
