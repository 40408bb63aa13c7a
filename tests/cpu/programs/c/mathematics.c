// SPDX-License-Identifier: Apache-2.0
// Functions of the mathematical library, to the last bit.
#include <complex.h>
#include <math.h>

#include "programs.h"

typedef double (*Function)(double);

int run_mathematics(int argc, char** argv) {
  (void)argc, (void)argv;
  static const struct {
    const char* name;
    Function function;
    double low, high;
  } functions[] = {
      {"sin", sin, -30, 30},     {"cos", cos, -1e6, 1e6},      {"tan", tan, -1.5, 1.5},
      {"exp", exp, -700, 700},   {"log", log, 1e-9, 1e9},      {"log1p", log1p, -1, 10},
      {"cbrt", cbrt, -1e9, 1e9}, {"tgamma", tgamma, 0.1, 170}, {"erf", erf, -4, 4},
      {"atan", atan, -50, 50},   {"sinh", sinh, -20, 20},      {"exp2", exp2, -1080, 1020},
      {"asin", asin, -1, 1},     {"expm1", expm1, -5, 5},      {"floor", floor, -9, 9},
      {"round", round, -9, 9},
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
    uint64_t state = 7 + i;
    double sum = 0, last = 0;
    for (int j = 0; j < 200; ++j) {
      double x = functions[i].low + (functions[i].high - functions[i].low) * next_fraction(&state);
      last = functions[i].function(x);
      sum += fmod(last, 1000.0);
    }
    printf("%s %a %a\n", functions[i].name, last, sum);
  }
  printf("pow %a hypot %a atan2 %a\n", pow(1.0000001, 1e7), hypot(3e200, 4e200), atan2(-1.0, -2.0));
  printf("powf %a sinf %a expf %a\n", (double)powf(1.1f, 20.5f), (double)sinf(1e5f), (double)expf(-3.25f));
  int exponent;
  double fraction = frexp(-12345.678, &exponent);
  printf("frexp %a %d ldexp %a remainder %a nextafter %a\n", fraction, exponent, ldexp(0.7, -1070),
         remainder(10.5, 3.0), nextafter(1.0, 2.0));
  double complex root = csqrt(-3.0 + 4.0 * I) * cexp(I * 0.5);
  printf("complex %a %a\n", creal(root), cimag(root));
  return 0;
}
