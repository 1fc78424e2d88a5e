// The program that every subject runs: it writes one byte and ends. With an argument that is no
// option it stays after the byte until it is killed, as the one process of an idle sandbox does;
// options are what a shell is started with, whose place it can take.
#include "freestanding.h"

__attribute__((noreturn, used)) void program_main(const long* stack) {
  system_call(kWrite, 1, (long)".", 1, 0);
  const char* const* arguments = (const char* const*)(stack + 1);
  if (stack[0] > 1 && arguments[1][0] != '-') {
    while (1) system_call(kPpoll, 0, 0, 0, 0);
  }
  end_program(0);
}
