// SPDX-License-Identifier: Apache-2.0
// Floating-point arithmetic in single, double and quadruple precision (the last in software), and
// conversions.
#include <float.h>
#include <math.h>
#include <string.h>

#include "programs.h"

static const double values[] = {0.0,
                                -0.0,
                                1.0,
                                -1.5,
                                0.1,
                                1e300,
                                -1e-300,
                                4.9e-324,
                                2147483647.5,
                                -2147483648.5,
                                9.2233720368547758e18,
                                1.8446744073709552e19,
                                3.4e38,
                                1e-45,
                                INFINITY,
                                -INFINITY,
                                NAN};
enum { value_count = sizeof values / sizeof *values };

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  return bits;
}

static uint32_t bits_of_single(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

static uint64_t double_operations(uint64_t sum, double a, double b) {
  sum = mixed(sum, bits_of(a + b));
  sum = mixed(sum, bits_of(a - b));
  sum = mixed(sum, bits_of(a * b));
  sum = mixed(sum, bits_of(a / b));
  sum = mixed(sum, bits_of(sqrt(fabs(a))));
  sum = mixed(sum, bits_of(fma(a, b, -a)));
  sum = mixed(sum, bits_of(fmin(a, b)) + bits_of(fmax(a, b)) + bits_of(copysign(a, b)));
  return mixed(
      sum, (uint64_t)((a < b) | (a <= b) << 1 | (a == b) << 2 | isunordered(a, b) << 3 | !!signbit(a) << 4));
}

static uint64_t single_operations(uint64_t sum, float a, float b) {
  sum = mixed(sum, bits_of_single(a + b));
  sum = mixed(sum, bits_of_single(a - b));
  sum = mixed(sum, bits_of_single(a * b));
  sum = mixed(sum, bits_of_single(a / b));
  sum = mixed(sum, bits_of_single(sqrtf(fabsf(a))));
  sum = mixed(sum, bits_of_single(fmaf(a, b, -a)));
  return mixed(sum, (uint64_t)((a < b) | (a <= b) << 1 | (a == b) << 2));
}

static uint64_t conversions(uint64_t sum, double a) {
  if (a > -1e9 && a < 1e9) sum = mixed(sum, (uint64_t)(int64_t)(int32_t)a);
  if (a >= 0 && a < 4e9) sum = mixed(sum, (uint32_t)a);
  if (a > -9e18 && a < 9e18) sum = mixed(sum, (uint64_t)(int64_t)a);
  if (a >= 0 && a < 1.8e19) sum = mixed(sum, (uint64_t)a);
  sum = mixed(sum, bits_of((double)(float)a));
  return mixed(sum, bits_of((double)(long double)a));
}

int run_floating(int argc, char** argv) {
  (void)argc, (void)argv;
  uint64_t sums[3] = {0};
  for (int i = 0; i < value_count; ++i) {
    for (int j = 0; j < value_count; ++j) {
      sums[0] = double_operations(sums[0], values[i], values[j]);
      sums[1] = single_operations(sums[1], (float)values[i], (float)values[j]);
    }
    sums[2] = conversions(sums[2], values[i]);
  }
  printf("double %016llx\nsingle %016llx\nconversions %016llx\n", (unsigned long long)sums[0],
         (unsigned long long)sums[1], (unsigned long long)sums[2]);
  volatile long double third = 1.0L / 3.0L;
  long double sum = 0;
  for (int i = 1; i <= 200; ++i) sum += third / (long double)i;
  printf("quadruple %.33Lf %.30Le\n", third, sum);
  double harmonic = 0;
  float harmonic_single = 0;
  for (int i = 1; i <= 20000; ++i) {
    harmonic += 1.0 / i;
    harmonic_single += 1.0f / (float)i;
  }
  printf("harmonic %a %a\n", harmonic, (double)harmonic_single);
  printf("limits %g %g %g %g\n", DBL_MIN, DBL_EPSILON, (double)FLT_MAX, (double)FLT_TRUE_MIN);
  return 0;
}
