// SPDX-License-Identifier: Apache-2.0
// The temperature of a chip: a stencil of five points over a square grid, with a source of heat at each.
#include <stdio.h>

#include "programs.h"

int hotspot(int n) {
  double *now = doubles(n * n), *next = doubles(n * n), *power = doubles(n * n);
#pragma omp parallel for
  for (int i = 0; i < n * n; i++) {
    now[i] = next[i] = 300 + 20 * uniform((uint64_t)i);
    power[i] = uniform((uint64_t)i + 77777);
  }
  for (int step = 0; step < 8; step++) {
#pragma omp parallel for
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++) {
        const int p = i * n + j;
        const double lateral = now[p - 1] + now[p + 1] + now[p - n] + now[p + n] - 4 * now[p];
        next[p] = now[p] + 0.1 * lateral + 0.5 * power[p] + 0.001 * (300 - now[p]);
      }
    double *swapped = now;
    now = next;
    next = swapped;
  }
  double sum = 0;
  for (int i = 0; i < n * n; i++) sum += now[i];
  printf("hotspot %d: %.9g\n", n, sum);
  return 0;
}
