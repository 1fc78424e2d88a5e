// The program that every subject runs: it writes one byte and ends. With any argument it stays
// after the byte until it is killed, as the one process of an idle sandbox does.
#include "freestanding.h"

__attribute__((noreturn, used)) void program_main(const long* stack) {
  system_call(kWrite, 1, (long)".", 1, 0);
  if (stack[0] > 1) {
    while (1) system_call(kPpoll, 0, 0, 0, 0);
  }
  end_program(0);
}
