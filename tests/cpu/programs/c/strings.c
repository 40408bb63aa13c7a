// SPDX-License-Identifier: Apache-2.0
// The functions of string.h and stdlib.h on overlapping, unaligned and long strings.
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "programs.h"

static int compare_numbers(const void* a, const void* b) {
  long x = *(const long*)a, y = *(const long*)b;
  return (x > y) - (x < y);
}

static uint64_t moves(void) {
  unsigned char buffer[512];
  uint64_t sum = 0, state = 3;
  for (int i = 0; i < 512; ++i) buffer[i] = (unsigned char)next_random(&state);
  for (int i = 0; i < 300; ++i) {
    size_t from = next_random(&state) % 256, to = next_random(&state) % 256,
           count = next_random(&state) % 200;
    if (i % 3 == 0) memmove(buffer + to, buffer + from, count);
    if (i % 3 == 1) memset(buffer + to, (int)i, count % 32);
    if (i % 3 == 2 && (from + count <= to || to + count <= from)) memcpy(buffer + to, buffer + from, count);
    sum = mixed_bytes(sum, buffer, sizeof buffer);
    sum = mixed(sum, (uint64_t)(memcmp(buffer + from, buffer + to, count) > 0));
    const unsigned char* found = (const unsigned char*)memchr(buffer + from, i & 255, count);
    sum = mixed(sum, found ? (uint64_t)(found - buffer) : 999);
  }
  return sum;
}

int run_strings(int argc, char** argv) {
  (void)argc, (void)argv;
  char text[256] = "the quick brown fox jumps over the lazy dog; ";
  strcat(text, "pack my box with five dozen liquor jugs");
  printf("%zu %016llx\n", strlen(text), (unsigned long long)moves());
  char copy[256];
  strcpy(copy, text);
  int words = 0;
  for (char* word = strtok(copy, " ;"); word; word = strtok(NULL, " ;")) {
    word[0] = (char)toupper(word[0]);
    printf("%s%s", words++ ? "," : "", word);
  }
  printf(" %d\n", words);
  printf("%s|%s|%zu|%zu\n", strstr(text, "lazy"), strrchr(text, 'j'), strspn(text, "the "),
         strcspn(text, "q"));
  printf("%d %d %d\n", strcmp("abc", "abd") < 0, strncmp("abcdef", "abcxyz", 3),
         strcasecmp("HeLLo", "hEllO"));
  char* end;
  printf("%ld %lu %lld", strtol("-0x7fz", &end, 0), strtoul("777", NULL, 8),
         strtoll("99999999999999999999", NULL, 10));
  printf(" %s %d\n", end, errno == ERANGE);
  printf("%a %a %a %a\n", strtod("3.14159e-5x", &end), strtod("0x1.8p3", NULL), strtod("inf", NULL),
         strtod("1e-310", NULL));
  long numbers[64];
  uint64_t state = 5, sum = 0;
  for (int i = 0; i < 64; ++i) numbers[i] = (long)(next_random(&state) % 1000) - 500;
  qsort(numbers, 64, sizeof *numbers, compare_numbers);
  for (int i = 0; i < 64; ++i) sum = mixed(sum, (uint64_t)numbers[i]);
  long* found = (long*)bsearch(&numbers[17], numbers, 64, sizeof *numbers, compare_numbers);
  printf("%016llx %ld\n", (unsigned long long)sum, found ? *found : -1);
  char* duplicate = strdup(text);
  for (char *a = duplicate, *b = duplicate + strlen(duplicate) - 1; a < b; ++a, --b) {
    char kept = *a;
    *a = *b;
    *b = kept;
  }
  printf("%s\n%s\n", duplicate, strerror(ENOENT));
  free(duplicate);
  return 0;
}
