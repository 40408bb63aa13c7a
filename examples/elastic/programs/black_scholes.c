// SPDX-License-Identifier: Apache-2.0
// Prices of European options by the Black-Scholes formula: computation with little memory.
#include <math.h>
#include <stdio.h>

#include "programs.h"

static double normal(double x) {
  return 0.5 * erfc(-x * 0.70710678118654752440);
}

static inline double price_of(int i) {
  const double spot = 80 + 40 * uniform((uint64_t)i), strike = 80 + 40 * uniform((uint64_t)i + 100000);
  const double years = 0.25 + uniform((uint64_t)i + 200000), rate = 0.03, volatility = 0.25;
  const double spread = volatility * sqrt(years);
  const double d1 = (log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread;
  return spot * normal(d1) - strike * exp(-rate * years) * normal(d1 - spread);
}

int black_scholes(int options) {
  double *price = doubles(options);
  double sum = 0;
#pragma omp parallel for
  for (int i = 0; i < options; i++) price[i] = price_of(i);
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < options; i++) sum += price[i];
  printf("black-scholes %d: %.6f\n", options, sum);
  return 0;
}

enum { runs = 100, parts = 4 };

// The same prices again and again, as PARSEC does to be measured: each time four tasks, then a taskwait.
int black_scholes_tasks(int options) {
  double *price = doubles(options);
#pragma omp parallel
#pragma omp single
  for (int run = 0; run < runs; run++) {
    for (int part = 0; part < parts; part++)
#pragma omp task firstprivate(part)
      for (int i = options * part / parts; i < options * (part + 1) / parts; i++) price[i] = price_of(i);
#pragma omp taskwait
  }
  double sum = 0;
  for (int i = 0; i < options; i++) sum += price[i];
  printf("black-scholes by tasks %d: %.6f\n", options, sum);
  return 0;
}
