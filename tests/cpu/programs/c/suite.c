// SPDX-License-Identifier: Apache-2.0
#include "suite.h"

#include <string.h>

int run_suite(const Entry* entries, int argc, char** argv) {
  for (const Entry* each = entries; each->name; ++each)
    if (argc > 1 && strcmp(each->name, argv[1]) == 0) return each->run(argc - 1, argv + 1);
  fprintf(stderr, "usage: %s PROGRAM [ARGUMENTS], one of:", argv[0]);
  for (const Entry* each = entries; each->name; ++each) fprintf(stderr, " %s", each->name);
  fprintf(stderr, "\n");
  return 2;
}

uint64_t mixed_bytes(uint64_t sum, const void* bytes, size_t count) {
  const unsigned char* at = (const unsigned char*)bytes;
  for (size_t i = 0; i < count; ++i) sum = mixed(sum, at[i]);
  return sum;
}
