// SPDX-License-Identifier: Apache-2.0
// malloc and its relatives: many sizes, growth, reuse, and pieces so large that they come from mmap.
#define _GNU_SOURCE  // for mremap
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "programs.h"

int run_allocation(int argc, char** argv) {
  enum { slots = 256 };
  long rounds = number_argument(argc, argv, 1, 3000);
  unsigned char* held[slots] = {0};
  size_t sizes[slots] = {0};
  uint64_t state = 11, sum = 0;
  size_t most = 0, now = 0;
  for (long i = 0; i < rounds; ++i) {
    size_t slot = next_random(&state) % slots, size = 1 + next_random(&state) % (i % 50 == 0 ? 200000 : 600);
    if (held[slot]) {
      sum = mixed(sum, held[slot][0] + held[slot][sizes[slot] - 1]);
      now -= sizes[slot];
    }
    if (i % 3 == 0) {
      free(held[slot]);
      held[slot] = (unsigned char*)calloc(1, size);
      for (size_t j = 0; j < size; j += 97) sum += held[slot][j];
    } else {
      held[slot] = (unsigned char*)realloc(held[slot], size);
    }
    if (!held[slot]) return 1;
    sizes[slot] = size;
    now += size;
    if (now > most) most = now;
    held[slot][0] = (unsigned char)i;
    held[slot][size - 1] = (unsigned char)(i >> 3);
  }
  for (int i = 0; i < slots; ++i) free(held[i]);
  printf("sum %016llx most %zu\n", (unsigned long long)sum, most);
  void* aligned = NULL;
  int result = posix_memalign(&aligned, 4096, 10000);
  printf("aligned %d %d\n", result, (int)((uintptr_t)aligned % 4096));
  free(aligned);
  char* large = (char*)malloc(8 << 20);
  for (size_t i = 0; i < 8 << 20; i += 4096) large[i] = (char)(i >> 12);
  large = (char*)realloc(large, 16 << 20);
  for (size_t i = 0; i < 8 << 20; i += 4096) sum = mixed(sum, (unsigned char)large[i]);
  free(large);
  char* pages = (char*)mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(pages, 7, 64 << 10);
  madvise(pages, 32 << 10, MADV_DONTNEED);
  printf("pages %d %d %d\n", pages[0], pages[(32 << 10) - 1], pages[32 << 10]);
  pages = (char*)mremap(pages, 64 << 10, 256 << 10, MREMAP_MAYMOVE);
  printf("moved %d %d\n", pages[40 << 10], pages[200 << 10]);
  munmap(pages, 256 << 10);
  char* before = (char*)sbrk(0);
  printf("break %d %d\n", sbrk(8192) == before, (char*)sbrk(0) - before == 8192);
  printf("sum %016llx\n", (unsigned long long)sum);
  return malloc(SIZE_MAX / 2) == NULL ? 0 : 1;
}
