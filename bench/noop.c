// The program that every subject runs: it writes one byte and ends. With any argument it stays
// after the byte until it is killed, as the one process of an idle sandbox does.
//
// No libc: what is measured is the way to the program, not the program. At the entry the stack
// holds argc, on both processors.

#if defined(__x86_64__)

enum { kWrite = 1, kPpoll = 271, kExitGroup = 231 };

__asm__(
    ".globl _start\n"
    "_start:\n"
    "  xorl %ebp, %ebp\n"
    "  movq (%rsp), %rdi\n"
    "  andq $-16, %rsp\n"
    "  call noop_main\n");

static long system_call(long number, long a, long b, long c) {
  long result = number;
  register long fourth __asm__("r10") = 0;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  return result;
}

#elif defined(__aarch64__)

enum { kWrite = 64, kPpoll = 73, kExitGroup = 94 };

__asm__(
    ".globl _start\n"
    "_start:\n"
    "  mov x29, xzr\n"
    "  ldr x0, [sp]\n"
    "  bl noop_main\n");

static long system_call(long number, long a, long b, long c) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = 0;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}

#else
#error "hearth runs on x86_64 and aarch64"
#endif

__attribute__((noreturn, used)) void noop_main(long argc) {
  system_call(kWrite, 1, (long)".", 1);
  if (argc > 1) {
    while (1) system_call(kPpoll, 0, 0, 0);
  }
  while (1) system_call(kExitGroup, 0, 0, 0);
}
