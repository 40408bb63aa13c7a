// SPDX-License-Identifier: Apache-2.0
// Small parallel programs for studies of recorded traces: each takes its size and prints a number that depends
// on all its work.
#pragma once
#include <stdint.h>

int black_scholes(int size);
int black_scholes_tasks(int size);
int canneal(int size);
int cholesky_tasks(int size);
int ferret(int size);
int hotspot(int size);
int hydrodynamics(int size);
int hydrodynamics_tasks(int size);
int k_means(int size);
int matrix(int size);
int matrix_tasks(int size);
int queue_threads(int size);
int stencil_threads(int size);
int stream_cluster(int size);
int swaptions(int size);
int swaptions_tasks(int size);

// The i-th number of a fixed sequence that looks random, and the same in [0, 1).
static inline uint64_t mixed(uint64_t i) {
  i = (i + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  i = (i ^ (i >> 27)) * 0x94d049bb133111ebu;
  return i ^ (i >> 31);
}
static inline double uniform(uint64_t i) { return (double)(mixed(i) >> 11) * 0x1p-53; }

// Memory for so many doubles, beginning at a page; ends the program if there is none.
double *doubles(long count);
