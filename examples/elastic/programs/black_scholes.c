// SPDX-License-Identifier: Apache-2.0
// Prices of European options by the Black-Scholes formula: computation with little memory.
#include <math.h>
#include <stdio.h>

#include "programs.h"

static double normal(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }

int black_scholes(int options) {
  double *price = doubles(options);
  double sum = 0;
#pragma omp parallel for
  for (int i = 0; i < options; i++) {
    const double spot = 80 + 40 * uniform((uint64_t)i), strike = 80 + 40 * uniform((uint64_t)i + 100000);
    const double years = 0.25 + uniform((uint64_t)i + 200000), rate = 0.03, volatility = 0.25;
    const double spread = volatility * sqrt(years);
    const double d1 = (log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread;
    price[i] = spot * normal(d1) - strike * exp(-rate * years) * normal(d1 - spread);
  }
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < options; i++) sum += price[i];
  printf("black-scholes %d: %.6f\n", options, sum);
  return 0;
}
