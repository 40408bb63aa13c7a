// SPDX-License-Identifier: Apache-2.0
// Rounding modes and exception flags through fenv.h.
#include <fenv.h>
#include <float.h>
#include <math.h>

#include "programs.h"

static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
static const char* const mode_names[] = {"nearest", "zero", "down", "up"};

static void flags(const char* what) {
  int raised = fetestexcept(FE_ALL_EXCEPT);
  printf(" %s:%s%s%s%s%s", what, raised & FE_INVALID ? "v" : "", raised & FE_DIVBYZERO ? "z" : "",
         raised & FE_OVERFLOW ? "o" : "", raised & FE_UNDERFLOW ? "u" : "", raised & FE_INEXACT ? "x" : "");
  feclearexcept(FE_ALL_EXCEPT);
}

int run_rounding(int argc, char** argv) {
  (void)argc, (void)argv;
  for (int i = 0; i < 4; ++i) {
    volatile double one = 1, three = 3, zero = 0, large = DBL_MAX, small = DBL_MIN, half = 2.5,
                    negative = -2.5;
    volatile float single = 16777217.0f, seven = 7;
    fesetround(modes[i]);
    printf("%s %d\n", mode_names[i], fegetround() == modes[i]);
    feclearexcept(FE_ALL_EXCEPT);
    volatile double quotient = one / three, negated = -one / three;
    flags("divide");
    volatile double infinite = one / zero;
    flags("zero");
    volatile double invalid = zero / zero;
    flags("invalid");
    volatile double over = large * large;
    flags("overflow");
    volatile double under = small * small;
    flags("underflow");
    volatile double exact = one + three;
    flags("exact");
    volatile double root = sqrt(-three);
    flags("root");
    volatile float narrow = (float)quotient;
    flags("narrow");
    volatile float ratio = single / seven;
    flags("ratio");
    long rounded = lrint(half), other = lrint(negative);
    flags("lrint");
    volatile int64_t converted = (int64_t)infinite;
    flags("convert");
    printf("\n %a %a %a %a %a %a %a %a %a %ld %ld %lld %d %d\n", quotient, negated, infinite, over, under,
           exact, (double)narrow, (double)ratio, nearbyint(half), rounded, other, (long long)converted,
           isnan(invalid) != 0, isnan(root) != 0);
    // What the library prints and reads depends on the mode, too.
    printf(" %.3f %.10g %a\n", quotient, 2.0 / 3.0 * 1e10, strtod("0.1", NULL));
  }
  fesetround(FE_TONEAREST);
  fenv_t kept;
  feholdexcept(&kept);
  feraiseexcept(FE_INVALID | FE_OVERFLOW);
  flags("raised");
  fesetenv(&kept);
  flags("restored");
  printf("\n");
  return 0;
}
