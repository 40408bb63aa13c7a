// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic of all widths, with operands at the edges.
#include "programs.h"

static const uint64_t edges[] = {0,
                                 1,
                                 2,
                                 7,
                                 0x7f,
                                 0x80,
                                 0xffff,
                                 0x7fffffff,
                                 0x80000000,
                                 0xffffffff,
                                 0x100000000,
                                 0x7fffffffffffffff,
                                 0x8000000000000000,
                                 0xfffffffffffffffe,
                                 0xffffffffffffffff,
                                 0x123456789abcdef0};
enum { edge_count = sizeof edges / sizeof *edges };

#define ARITHMETIC(name, S, U)                                                                \
  static uint64_t name(uint64_t sum, U a, U b, S minimum) {                                   \
    sum = mixed(sum, (U)(a + b));                                                             \
    sum = mixed(sum, (U)(a - b));                                                             \
    sum = mixed(sum, (U)((uint64_t)a * b));                                                   \
    sum = mixed(sum, b ? (U)(a / b) : 1);                                                     \
    sum = mixed(sum, b ? (U)(a % b) : 2);                                                     \
    S x = (S)a, y = (S)b;                                                                     \
    int defined = y != 0 && !(x == minimum && y == -1);                                       \
    sum = mixed(sum, defined ? (uint64_t)(x / y) : 3);                                        \
    sum = mixed(sum, defined ? (uint64_t)(x % y) : 4);                                        \
    sum = mixed(sum, (U)(a << (b & 7)) + (U)(a >> (b & 7)) + (uint64_t)(x >> (b & 7)));       \
    return mixed(sum, (a < b) | (x < y) << 1 | (a == b) << 2 | (a >= b) << 3 | (x > y) << 4); \
  }
ARITHMETIC(bytes, int8_t, uint8_t)
ARITHMETIC(halves, int16_t, uint16_t)
ARITHMETIC(words, int32_t, uint32_t)
ARITHMETIC(doubles, int64_t, uint64_t)

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static uint64_t power_modulo(uint64_t base, uint64_t exponent, uint64_t modulus) {
  unsigned __int128 result = 1, square = base % modulus;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) result = result * square % modulus;
    square = square * square % modulus;
  }
  return (uint64_t)result;
}

int run_integer(int argc, char** argv) {
  uint64_t sums[4] = {0}, state = 42;
  long rounds = number_argument(argc, argv, 1, 300);
  for (long i = 0; i < edge_count * edge_count + rounds; ++i) {
    uint64_t a = i < edge_count * edge_count ? edges[i / edge_count] : next_random(&state);
    uint64_t b = i < edge_count * edge_count ? edges[i % edge_count] : next_random(&state) >> (i & 63);
    sums[0] = bytes(sums[0], (uint8_t)a, (uint8_t)b, INT8_MIN);
    sums[1] = halves(sums[1], (uint16_t)a, (uint16_t)b, INT16_MIN);
    sums[2] = words(sums[2], (uint32_t)a, (uint32_t)b, INT32_MIN);
    sums[3] = doubles(sums[3], a, b, INT64_MIN);
  }
  for (int i = 0; i < 4; ++i) printf("%d bytes: %016llx\n", 1 << i, (unsigned long long)sums[i]);
  unsigned __int128 factorial = 1;
  for (int i = 2; i <= 33; ++i) factorial *= (unsigned)i;
  printf("33! = %016llx%016llx, / 10^9 = %llu\n", (unsigned long long)(factorial >> 64),
         (unsigned long long)factorial, (unsigned long long)(factorial / 1000000000u % 1000000007u));
  printf("gcd %llu\n",
         (unsigned long long)greatest_common_divisor(2ull * 3 * 5 * 7 * 11 * 13 * 1000003, 1000003ull * 77));
  printf("power %llu\n", (unsigned long long)power_modulo(3, 1000000006, 998244353));
  int bits = 0;
  for (int i = 0; i < 100; ++i) {
    uint64_t value = next_random(&state) >> (i % 60);
    bits += __builtin_popcountll(value) * 3 + __builtin_clzll(value | 1) * 5 +
            __builtin_ctzll(value | 1ull << 63) * 7 + __builtin_parityll(value) +
            (int)(__builtin_bswap64(value) & 63);
  }
  printf("bits %d\n", bits);
  long long products[2];
  volatile long long factor = 3037000499ll;
  printf("overflow %d %d\n", __builtin_mul_overflow(factor + 1, factor + 1, &products[0]),
         __builtin_mul_overflow(factor, factor, &products[1]));
  return 0;
}
