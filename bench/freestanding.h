// Programs without a libc: how they begin, and how they ask the kernel. What is measured is the way
// to a program, not its libc. Include once; `void program_main(const long* stack)` is the
// program, the stack as the kernel left it: argc, then the arguments.
#pragma once

#if defined(__x86_64__)

enum {
  kWrite = 1,
  kClose = 3,
  kClockGettime = 228,
  kExitGroup = 231,
  kOpenat = 257,
  kUnlinkat = 263,
  kPpoll = 271
};

__asm__(
    ".globl _start\n"
    "_start:\n"
    "  xorl %ebp, %ebp\n"
    "  movq %rsp, %rdi\n"
    "  andq $-16, %rsp\n"
    "  call program_main\n");

static long system_call(long number, long a, long b, long c, long d) {
  long result = number;
  register long fourth __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  return result;
}

#elif defined(__aarch64__)

enum {
  kUnlinkat = 35,
  kOpenat = 56,
  kClose = 57,
  kWrite = 64,
  kPpoll = 73,
  kExitGroup = 94,
  kClockGettime = 113
};

__asm__(
    ".globl _start\n"
    "_start:\n"
    "  mov x29, xzr\n"
    "  mov x0, sp\n"
    "  bl program_main\n");

static long system_call(long number, long a, long b, long c, long d) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}

#else
#error "hearth runs on x86_64 and aarch64"
#endif

__attribute__((noreturn)) static void end_program(int code) {
  while (1) system_call(kExitGroup, code, 0, 0, 0);
}
