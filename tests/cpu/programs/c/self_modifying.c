// SPDX-License-Identifier: Apache-2.0
// Instructions that the program writes itself, calls, and changes.
#include <string.h>
#include <sys/mman.h>

#include "programs.h"

int run_self_modifying(int argc, char** argv) {
  (void)argc, (void)argv;
  uint32_t* code =
      (uint32_t*)mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  long sum = 0;
  for (int i = 0; i < 100; ++i) {
    // addi a0, a0, i; slli a0, a0, 1; ret
    const uint32_t body[] = {0x00050513u | (uint32_t)i << 20, 0x00151513u, 0x00008067u};
    memcpy(code, body, sizeof body);
    __builtin___clear_cache((char*)code, (char*)(code + 3));
    long (*function)(long) = (long (*)(long))(uintptr_t)code;
    for (int j = 0; j < 3; ++j) sum = function(sum) % 1000003;
  }
  printf("%ld\n", sum);
  printf("protect %d\n", mprotect(code, 4096, PROT_READ | PROT_EXEC));
  printf("%ld\n", ((long (*)(long))(uintptr_t)code)(1));
  return 0;
}
