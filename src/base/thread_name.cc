#include "base/thread_name.h"

#include <sys/prctl.h>

#include <string>

namespace hearth {

void name_thread(std::string_view name) {
  ::prctl(PR_SET_NAME, std::string(name).c_str(), 0, 0, 0);
}

}  // namespace hearth
