// small_files FOLDER COUNT: makes COUNT files of 1 KiB in FOLDER, prints how many it made in a
// second, and removes them again, which does not count. Fails with code 2 for bad arguments, 1 when
// a file cannot be made.
#include "freestanding.h"

enum { kFileBytes = 1024, kMostFiles = 1000000, kDigits = 8 };
enum { kReadOnlyFolder = 0, kNewFile = 01 | 0100 | 0200 };  // O_WRONLY | O_CREAT | O_EXCL

static char content[kFileBytes];

// Decimal, backwards from the end of `text`: where it begins.
static char* put_number(char* end, unsigned long number) {
  *--end = (char)('0' + number % 10);
  while (number /= 10) *--end = (char)('0' + number % 10);
  return end;
}

static long parse_number(const char* text) {
  long number = 0;
  for (; *text >= '0' && *text <= '9' && number <= kMostFiles; ++text)
    number = number * 10 + (*text - '0');
  return *text == 0 && number <= kMostFiles ? number : 0;
}

static unsigned long nanoseconds(void) {
  long time[2] = {0, 0};
  system_call(kClockGettime, 1, (long)time, 0, 0);  // the monotonic one
  return (unsigned long)time[0] * 1000000000UL + (unsigned long)time[1];
}

static void make_file(long folder_fd, const char* name) {
  const long fd = system_call(kOpenat, folder_fd, (long)name, kNewFile, 0644);
  if (fd < 0) end_program(1);
  if (system_call(kWrite, fd, (long)content, kFileBytes, 0) != kFileBytes) end_program(1);
  system_call(kClose, fd, 0, 0, 0);
}

__attribute__((noreturn, used)) void program_main(const long* stack) {
  const char* const* arguments = (const char* const*)(stack + 1);
  const long count = stack[0] == 3 ? parse_number(arguments[2]) : 0;
  if (count == 0) end_program(2);
  const long folder_fd =
      system_call(kOpenat, -100, (long)arguments[1], kReadOnlyFolder, 0);  // -100: AT_FDCWD
  if (folder_fd < 0) end_program(1);

  char name[kDigits + 1] = {0};
  const unsigned long begin = nanoseconds();
  for (long i = 0; i < count; ++i)
    make_file(folder_fd, put_number(name + kDigits, (unsigned long)i));
  const unsigned long time = nanoseconds() - begin;

  for (long i = 0; i < count; ++i)
    system_call(kUnlinkat, folder_fd, (long)put_number(name + kDigits, (unsigned long)i), 0, 0);
  char line[24];
  char* const end = line + sizeof line;
  end[-1] = '\n';
  const unsigned long rate = (unsigned long)count * 1000000000UL / (time == 0 ? 1 : time);
  char* const first = put_number(end - 1, rate);
  system_call(kWrite, 1, (long)first, end - first, 0);
  end_program(0);
}
