// SPDX-License-Identifier: Apache-2.0
// printf with all its conversions, and scanf from standard input.
#include <stddef.h>
#include <string.h>
#include <wchar.h>

#include "programs.h"

int run_formats(int argc, char** argv) {
  (void)argc, (void)argv;
  printf("[%5d|%-5d|%05d|%+d|% d|%x|%#X|%o|%c|%s|%.2s|%10.3s|%%]\n", 42, 42, 42, 42, 42, 48879, 48879, 511,
         'z', "text", "text", "text");
  printf("[%hhd|%hd|%ld|%lld|%zu|%td|%jd|%p]\n", (signed char)-1, (short)-2, -3l, -4ll, (size_t)5,
         (ptrdiff_t)-6, (intmax_t)7, (void*)0x1234);
  printf("[%f|%.0f|%10.3e|%-12g|%G|%a|%.3a|%F]\n", 3.14159, 2.5, 12345.678, 1e-5, 1e20, 0.1, 1.0 / 3,
         -1.0 / 0.0);
  printf("[%.*f|%*d|%-*d]\n", 3, 2.71828, 6, 7, 4, 9);
  printf("%2$s %1$s\n", "world", "hello");
  char buffer[16];
  int needed = snprintf(buffer, sizeof buffer, "%d bottles of %s", 99, "something");
  printf("%d %s\n", needed, buffer);
  long value;
  double real;
  char word[32], set[32];
  int count = 0, used = 0;
  while (scanf("%31s %ld %lf %31[a-z]%n", word, &value, &real, set, &used) == 4) {
    printf("%s %ld %g %s %d\n", word, value * 2, real / 2, set, used);
    ++count;
  }
  printf("%d records\n", count);
  int a, b;
  printf("%d", sscanf("17-0x1f", "%d-%i", &a, &b));
  printf(" %d %d\n", a, b);
  wchar_t wide[16];
  printf("%zu %ls\n", mbstowcs(wide, "wide", 16), wide);
  fprintf(stderr, "to standard error %d\n", count);
  return 0;
}
