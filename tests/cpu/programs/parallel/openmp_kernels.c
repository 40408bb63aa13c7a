// SPDX-License-Identifier: Apache-2.0
// Small OpenMP computations: threads, size, rounds as arguments.
#include <math.h>
#include <omp.h>
#include <string.h>

#include "programs.h"

static long begin(int argc, char** argv, int index, long otherwise) {
  omp_set_dynamic(0);
  omp_set_num_threads((int)number_argument(argc, argv, 1, 4));
  return number_argument(argc, argv, index, otherwise);
}

int run_omp_triad(int argc, char** argv) {
  long n = begin(argc, argv, 2, 4096), rounds = number_argument(argc, argv, 3, 3);
  double* a = (double*)malloc(sizeof(double) * (size_t)n * 3);
  double *b = a + n, *c = b + n, sum = 0;
#pragma omp parallel for
  for (long i = 0; i < n; ++i) a[i] = 0, b[i] = 1 + (double)(i % 10), c[i] = 2;
  for (long round = 0; round < rounds; ++round) {
#pragma omp parallel for
    for (long i = 0; i < n; ++i) a[i] = b[i] + 0.5 * c[i];
  }
#pragma omp parallel for reduction(+ : sum)
  for (long i = 0; i < n; ++i) sum += a[i];
  printf("triad %g\n", sum);
  free(a);
  return 0;
}

int run_omp_matrix(int argc, char** argv) {
  long n = begin(argc, argv, 2, 40);
  double* a = (double*)malloc(sizeof(double) * (size_t)(n * n) * 3);
  double *b = a + n * n, *c = b + n * n;
  for (long i = 0; i < n * n; ++i) a[i] = (double)(i % 7) - 3, b[i] = (double)(i % 5) - 2;
#pragma omp parallel for schedule(static)
  for (long i = 0; i < n; ++i) {
    for (long j = 0; j < n; ++j) c[i * n + j] = 0;
    for (long k = 0; k < n; ++k)
      for (long j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
  }
  double sum = 0;
  for (long i = 0; i < n * n; ++i) sum += c[i] * (double)(i % 3 + 1);
  printf("matrix %g\n", sum);
  free(a);
  return 0;
}

int run_omp_stencil(int argc, char** argv) {
  long n = begin(argc, argv, 2, 48), steps = number_argument(argc, argv, 3, 6);
  double* from = (double*)calloc((size_t)(n * n), sizeof(double));
  double* to = (double*)calloc((size_t)(n * n), sizeof(double));
  for (long i = 0; i < n; ++i) from[i] = to[i] = (double)(i % 5);
#pragma omp parallel
  for (long step = 0; step < steps; ++step) {
#pragma omp for schedule(dynamic, 4)
    for (long i = 1; i < n - 1; ++i)
      for (long j = 1; j < n - 1; ++j)
        to[i * n + j] = 0.25 * (from[(i - 1) * n + j] + from[(i + 1) * n + j] + from[i * n + j - 1] +
                                from[i * n + j + 1]);
#pragma omp single
    {
      double* kept = from;
      from = to;
      to = kept;
    }
  }
  double sum = 0;
  for (long i = 0; i < n * n; ++i) sum += from[i] * (double)(i % 3 + 1);
  printf("stencil %a\n", sum);
  free(from), free(to);
  return 0;
}

// Jacobi's method on a band matrix; the rows a thread gets differ in length.
int run_omp_solver(int argc, char** argv) {
  long n = begin(argc, argv, 2, 200), steps = number_argument(argc, argv, 3, 10);
  double* x = (double*)calloc((size_t)n, sizeof(double));
  double* next = (double*)calloc((size_t)n, sizeof(double));
  double change = 0;
#pragma omp parallel
  for (long step = 0; step < steps; ++step) {
#pragma omp single
    change = 0;
#pragma omp for schedule(guided) reduction(max : change)
    for (long i = 0; i < n; ++i) {
      long reach = 1 + i % 13;
      double sum = 1;
      for (long j = i > reach ? i - reach : 0; j < n && j <= i + reach; ++j)
        if (j != i) sum += x[j] / (double)(2 + (i ^ j) % 5);
      next[i] = sum / (double)(2 * reach + 3);
      double moved = fabs(next[i] - x[i]);
      change = moved > change ? moved : change;
    }
#pragma omp single
    {
      double* kept = x;
      x = next;
      next = kept;
    }
  }
  double sum = 0;
  for (long i = 0; i < n; ++i) sum += x[i] * (double)(i % 4 + 1);
  printf("solver %a %a\n", sum, change);
  free(x), free(next);
  return 0;
}

int run_omp_compute(int argc, char** argv) {
  long steps = begin(argc, argv, 2, 2000), total = 0;
#pragma omp parallel reduction(+ : total)
  {
    uint64_t state = 1 + (uint64_t)omp_get_thread_num();
    double x = 0.5;
    for (long i = 0; i < steps; ++i) {
      uint64_t value = next_random(&state);
      x = x * 0.999 + (double)(value & 1023) * 0x1p-10;
      total += value & 4096 ? (long)(value >> 60) : (long)x;
    }
  }
  printf("compute %ld\n", total);
  return 0;
}
