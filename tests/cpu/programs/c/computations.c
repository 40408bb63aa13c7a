// SPDX-License-Identifier: Apache-2.0
// Small computations with the behaviour of large ones: dense, sorting, branching, hashing, mixed.
#include <string.h>

#include "programs.h"

int run_matrix(int argc, char** argv) {
  long n = number_argument(argc, argv, 1, 48);
  double* a = (double*)malloc(sizeof(double) * (size_t)(n * n) * 3);
  double *b = a + n * n, *c = b + n * n;
  uint64_t state = 1;
  for (long i = 0; i < 2 * n * n; ++i) a[i] = next_fraction(&state) - 0.5;
  memset(c, 0, sizeof(double) * (size_t)(n * n));
  for (long i = 0; i < n; ++i)
    for (long k = 0; k < n; ++k)
      for (long j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
  double trace = 0, norm = 0;
  for (long i = 0; i < n; ++i) trace += c[i * n + i];
  for (long i = 0; i < n * n; ++i) norm += c[i] * c[i];
  printf("trace %a norm %a\n", trace, norm);
  free(a);
  return 0;
}

static void quicksort(int32_t* low, int32_t* high) {
  while (high - low > 16) {
    int32_t pivot = low[(high - low) / 2], *i = low, *j = high;
    for (;;) {
      while (*i < pivot) ++i;
      while (pivot < *j) --j;
      if (i >= j) break;
      int32_t kept = *i;
      *i++ = *j;
      *j-- = kept;
    }
    quicksort(low, i - 1 > low ? i - 1 : low);
    low = i;
  }
  for (int32_t* i = low + 1; i <= high; ++i) {
    int32_t value = *i, *j = i;
    for (; j > low && j[-1] > value; --j) *j = j[-1];
    *j = value;
  }
}

int run_sort(int argc, char** argv) {
  long count = number_argument(argc, argv, 1, 5000);
  int32_t* values = (int32_t*)malloc(sizeof(int32_t) * (size_t)count);
  uint64_t state = 2, sum = 0, before = 0;
  for (long i = 0; i < count; ++i) {
    values[i] = (int32_t)next_random(&state);
    before += (uint32_t)values[i];
  }
  quicksort(values, values + count - 1);
  int sorted = 1;
  for (long i = 0; i < count; ++i) {
    if (i && values[i - 1] > values[i]) sorted = 0;
    before -= (uint32_t)values[i];
    sum = mixed(sum, (uint64_t)values[i]);
  }
  printf("sorted %d same %d %016llx\n", sorted, before == 0, (unsigned long long)sum);
  free(values);
  return 0;
}

static long count_queens(unsigned all, unsigned columns, unsigned left, unsigned right) {
  if (columns == all) return 1;
  long count = 0;
  for (unsigned free_squares = all & ~(columns | left | right); free_squares;) {
    unsigned square = free_squares & -free_squares;
    free_squares ^= square;
    count += count_queens(all, columns | square, (left | square) << 1, (right | square) >> 1);
  }
  return count;
}

int run_queens(int argc, char** argv) {
  long n = number_argument(argc, argv, 1, 8);
  printf("%ld queens: %ld\n", n, count_queens((1u << n) - 1, 0, 0, 0));
  return 0;
}

static uint32_t rotated(uint32_t value, int by) {
  return value >> by | value << (32 - by);
}

// The constants are the first bits of the fractions of cube roots and square roots of primes.
static void sha256_block(uint32_t state[8], const uint32_t constants[64], const unsigned char* block) {
  uint32_t w[64], s[8];
  for (int i = 0; i < 16; ++i)
    w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
           block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t a = rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t b = rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  memcpy(s, state, sizeof s);
  for (int i = 0; i < 64; ++i) {
    uint32_t big1 = rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25);
    uint32_t first = s[7] + big1 + ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
    uint32_t big0 = rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22);
    uint32_t second = big0 + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += first;
    s[0] = first + second;
  }
  for (int i = 0; i < 8; ++i) state[i] += s[i];
}

static uint32_t fraction_of_root(unsigned prime, int cube) {
  unsigned __int128 low = 0, high = (unsigned __int128)1 << 37;
  while (high - low > 1) {
    unsigned __int128 middle = (low + high) / 2;
    unsigned __int128 power = cube ? middle * middle / 65536 * middle >> 48 : middle * middle >> 32;
    if (power < (unsigned __int128)prime << 32)
      low = middle;
    else
      high = middle;
  }
  return (uint32_t)low;
}

int run_sha256(int argc, char** argv) {
  long blocks = number_argument(argc, argv, 1, 100);
  uint32_t state[8], constants[64];
  int found = 0;
  for (unsigned candidate = 2; found < 64; ++candidate) {
    int prime = 1;
    for (unsigned divisor = 2; divisor * divisor <= candidate; ++divisor)
      if (candidate % divisor == 0) prime = 0;
    if (!prime) continue;
    if (found < 8) state[found] = fraction_of_root(candidate, 0);
    constants[found++] = fraction_of_root(candidate, 1);
  }
  // One message: blocks of counted bytes, then the padding that the standard asks for.
  unsigned char block[64];
  for (long i = 0; i < blocks; ++i) {
    for (int j = 0; j < 64; ++j) block[j] = (unsigned char)(i + j);
    sha256_block(state, constants, block);
  }
  memset(block, 0, 64);
  block[0] = 0x80;
  for (int i = 0; i < 8; ++i) block[63 - i] = (unsigned char)((uint64_t)blocks * 512 >> 8 * i);
  sha256_block(state, constants, block);
  for (int i = 0; i < 8; ++i) printf("%08x", state[i]);
  printf("\n");
  return 0;
}

typedef struct Node {
  struct Node* next;
  int kind, count;
  char name[32];
} Node;

int run_mix(int argc, char** argv) {
  long rounds = number_argument(argc, argv, 1, 2000);
  Node* list = NULL;
  for (int i = 0; i < 20; ++i) {
    Node* node = (Node*)calloc(1, sizeof *node);
    node->next = list;
    node->kind = i % 4;
    snprintf(node->name, sizeof node->name, "record number %d of a list", i);
    list = node;
  }
  int table[8][8] = {{0}};
  uint64_t sum = 0;
  for (long i = 0; i < rounds; ++i) {
    char text[32];
    for (Node* node = list; node; node = node->next) {
      switch (node->kind) {
        case 0:
          node->count += (int)i;
          break;
        case 1:
          node->count ^= (int)(i * 3);
          break;
        case 2:
          table[i & 7][node->count & 7] += node->count;
          break;
        default:
          node->count = table[(i + 1) & 7][i % 5] / 3 + (int)(i % 7);
      }
    }
    strcpy(text, list->name);
    text[i % 20] = (char)('a' + i % 26);
    sum = mixed(sum, (uint64_t)(strcmp(text, list->name) + 2));
    sum = mixed(sum, (uint64_t)list->next->count);
  }
  for (int i = 0; i < 64; ++i) sum = mixed(sum, (uint64_t)table[i / 8][i % 8]);
  for (Node *node = list, *next; node; node = next) {
    sum = mixed(sum, (uint64_t)node->count);
    next = node->next;
    free(node);
  }
  printf("mix %016llx\n", (unsigned long long)sum);
  return 0;
}
