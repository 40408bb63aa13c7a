// SPDX-License-Identifier: Apache-2.0
// Placement of a netlist by swaps: elements are read all over memory, and a swap takes the locks of both
// locations. Each thread owns the elements it moves, so that the result does not depend on the order.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "programs.h"

enum { nets = 4, locks = 64, rounds = 4 };

int canneal(int elements) {
  int *location = (int *)doubles(elements / 2 + 1);
  int *net = (int *)doubles((long)elements * nets / 2 + 1);
  omp_lock_t lock[locks];
  long swaps = 0;
  for (int i = 0; i < locks; i++) omp_init_lock(&lock[i]);
#pragma omp parallel for
  for (int i = 0; i < elements; i++) {
    location[i] = (int)(mixed((uint64_t)i) % 65536);
    for (int k = 0; k < nets; k++) net[i * nets + k] = (int)(mixed((uint64_t)(i * nets + k) + 5555555) % (uint64_t)elements);
  }
  for (int round = 0; round < rounds; round++) {
#pragma omp parallel for schedule(static) reduction(+ : swaps)
    for (int i = 0; i < elements / 2; i++) {
      const int a = 2 * i, b = 2 * i + 1;
      long before = 0, after = 0;
      for (int k = 0; k < nets; k++) {
        const int x = net[net[a * nets + k] * nets] % 1024, y = net[net[b * nets + k] * nets] % 1024;
        before += labs((long)location[a] % 1024 - x) + labs((long)location[b] % 1024 - y);
        after += labs((long)location[b] % 1024 - x) + labs((long)location[a] % 1024 - y);
      }
      if (after >= before) continue;
      omp_lock_t *own = &lock[i % locks];
      omp_set_lock(own);
      const int kept = location[a];
      location[a] = location[b];
      location[b] = kept;
      omp_unset_lock(own);
      swaps++;
    }
  }
  long sum = 0;
  for (int i = 0; i < elements; i++) sum += (long)location[i] * (1 + i % 5);
  printf("canneal %d: %ld swaps, %ld\n", elements, swaps, sum);
  return 0;
}
