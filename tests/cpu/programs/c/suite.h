// SPDX-License-Identifier: Apache-2.0
// What the programs of a suite share: the shape of a program, its size from the command line, random numbers,
// and a sum over results, so that each prints something that depends on all its work.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int (*Program)(int argc, char** argv);
typedef struct {
  const char* name;
  Program run;
} Entry;

// Runs the program that argv[1] names, with argv + 1; what it returns is the exit code.
int run_suite(const Entry* entries, int argc, char** argv);

// The number that argument `index` gives, or another if there is none.
static inline long number_argument(int argc, char** argv, int index, long otherwise) {
  return argc > index ? strtol(argv[index], NULL, 0) : otherwise;
}

// Random bits (xorshift64*), the same everywhere.
static inline uint64_t next_random(uint64_t* state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 0x2545f4914f6cdd1dull;
}

// From 0 to just below 1.
static inline double next_fraction(uint64_t* state) {
  return (double)(next_random(state) >> 11) * 0x1p-53;
}

// Mixes one more value into a sum (Fowler, Noll and Vo's hash of 64-bit words).
static inline uint64_t mixed(uint64_t sum, uint64_t value) {
  return (sum ^ value ^ value >> 29) * 0x100000001b3ull + 0x9e3779b97f4a7c15ull;
}

// Mixes all bytes of a piece of memory into a sum.
uint64_t mixed_bytes(uint64_t sum, const void* bytes, size_t count);

#ifdef __cplusplus
}
#endif
