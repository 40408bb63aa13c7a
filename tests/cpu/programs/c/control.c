// SPDX-License-Identifier: Apache-2.0
// Control flow: recursion, jumps across frames, tables of functions, arguments of varying number, large
// frames.
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "programs.h"

static jmp_buf landing;

static unsigned ackermann(unsigned m, unsigned n) {
  if (m == 0) return n + 1;
  return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

__attribute__((noinline)) static void descend(int depth) {
  volatile char room[128];
  room[0] = (char)depth;
  if (depth == 0) longjmp(landing, 7 + room[0]);
  if (depth > 0) descend(depth - 1);
  room[1] = room[0];
}

__attribute__((noinline)) static double sum_of(int count, ...) {
  va_list arguments;
  va_start(arguments, count);
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += i % 2 ? va_arg(arguments, double) : va_arg(arguments, int);
  va_end(arguments);
  return sum;
}

typedef struct {
  long a[5];
  double b;
} Large;

__attribute__((noinline)) static Large transform(Large value, float c, int d, short e, char f, long g, long h,
                                                 long i) {
  value.a[0] += d + e + f;
  value.a[4] += g * h + i;
  value.b *= c;
  return value;
}

static int interpret(const char* program) {
  static void* const labels[] = {&&push, &&add, &&multiply, &&negate, &&end};
  int stack[16], top = 0;
  const char* at = program;
  goto* labels[(int)*at++];
push:
  stack[top++] = *at++;
  goto* labels[(int)*at++];
add:
  --top;
  stack[top - 1] += stack[top];
  goto* labels[(int)*at++];
multiply:
  --top;
  stack[top - 1] *= stack[top];
  goto* labels[(int)*at++];
negate:
  stack[top - 1] = -stack[top - 1];
  goto* labels[(int)*at++];
end:
  return stack[0];
}

static long twice(long x) {
  return 2 * x;
}
static long squared(long x) {
  return x * x;
}
static long less(long x) {
  return x - 3;
}

__attribute__((noinline)) static long classify(long x) {
  switch (x) {
    case 0:
      return 5;
    case 1:
      return 17;
    case 2:
      return -4;
    case 3:
      return 99;
    case 4:
      return 1;
    case 5:
      return 1000;
    case 100:
      return 12;
    case 101 ... 200:
      return x;
    default:
      return -x;
  }
}

int run_control(int argc, char** argv) {
  long depth = number_argument(argc, argv, 1, 6);
  printf("ackermann %u\n", ackermann(2, (unsigned)depth * 3));
  volatile int kept = 1;
  int came = setjmp(landing);
  if (came == 0) {
    kept = 2;
    descend(100);
  }
  printf("setjmp %d %d\n", came, kept);
  printf("variadic %g\n", sum_of(7, 1, 2.5, 3, 4.5, 5, 6.5, 7));
  Large large = {{1, 2, 3, 4, 5}, 2.0};
  large = transform(large, 1.5f, 10, -3, 'a', 1l << 40, 3, 7);
  printf("large %ld %ld %g\n", large.a[0], large.a[4], large.b);
  printf("interpreter %d\n", interpret("\0\5\0\7\1\0\3\2\3\4"));
  long (*const table[])(long) = {twice, squared, less};
  long value = 3;
  for (int i = 0; i < 40; ++i) value = table[i * 7 % 3](value) % 100003;
  printf("table %ld\n", value);
  long sum = 0;
  for (long i = -5; i < 250; ++i) sum = sum * 31 + classify(i);
  printf("switch %ld\n", sum);
  size_t total = 0;
  for (int i = 1; i < 50; ++i) {
    char* room = (char*)alloca((size_t)i * 37);
    memset(room, i, (size_t)i * 37);
    total += (unsigned char)room[i * 36];
  }
  printf("alloca %zu\n", total);
  return 0;
}
