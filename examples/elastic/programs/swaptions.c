// SPDX-License-Identifier: Apache-2.0
// Monte Carlo prices of swaptions: independent paths of an interest rate, scheduled one swaption at a time.
#include <math.h>
#include <stdio.h>

#include "programs.h"

enum { steps = 12, few_paths = 60, few_swaptions = 16 };

static double price_of(int swaption, int paths) {
  double sum = 0;
  for (int path = 0; path < paths; path++) {
    double rate = 0.02 + 0.001 * swaption, discount = 1;
    for (int step = 0; step < steps; step++) {
      const uint64_t draw = ((uint64_t)swaption * (uint64_t)paths + (uint64_t)path) * steps + (uint64_t)step;
      double shock = -6;  // nearly normal: the sum of twelve uniform numbers
      for (int i = 0; i < 12; i++) shock += uniform(draw * 12 + (uint64_t)i);
      rate += 0.1 * (0.03 - rate) + 0.01 * sqrt(fabs(rate)) * shock;
      discount *= exp(-rate / steps);
    }
    const double value = rate - 0.025;
    if (value > 0) sum += discount * value;
  }
  return sum / paths;
}

static int report(const double *price, int count) {
  double total = 0;
  for (int s = 0; s < count; s++) total += price[s];
  printf("swaptions %d: %.12g\n", count, total);
  return 0;
}

int swaptions(int count) {
  double *price = doubles(count);
#pragma omp parallel for schedule(dynamic, 1)
  for (int s = 0; s < count; s++) price[s] = price_of(s, few_paths);
  return report(price, count);
}

// Sixteen swaptions, a task each.
int swaptions_tasks(int paths) {
  double *price = doubles(few_swaptions);
#pragma omp parallel
#pragma omp single
  for (int s = 0; s < few_swaptions; s++)
#pragma omp task firstprivate(s)
    price[s] = price_of(s, paths);
  return report(price, few_swaptions);
}
