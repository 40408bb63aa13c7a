// SPDX-License-Identifier: Apache-2.0
// The product of two square matrices, rows divided among the threads; and the same by blocks as tasks.
#include <stdio.h>

#include "programs.h"

static void fill(double *matrix, int n, uint64_t first) {
#pragma omp parallel for
  for (int i = 0; i < n * n; i++) matrix[i] = uniform(first + (uint64_t)i);
}

static int report(const double *c, int n) {
  double sum = 0;
  for (int i = 0; i < n * n; i++) sum += c[i] * (1 + i % 7);
  printf("matrix %d: %.12g\n", n, sum);
  return 0;
}

int matrix(int n) {
  double *a = doubles(n * n), *b = doubles(n * n), *c = doubles(n * n);
  fill(a, n, 0);
  fill(b, n, 1000000);
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
  return report(c, n);
}

enum { block = 16 };

static void multiply_block(const double *a, const double *b, double *c, int n) {
  for (int i = 0; i < block; i++)
    for (int k = 0; k < block; k++) {
      const double factor = a[i * n + k];
      for (int j = 0; j < block; j++) c[i * n + j] += factor * b[k * n + j];
    }
}

int matrix_tasks(int n) {
  n = n / block * block;
  double *a = doubles(n * n), *b = doubles(n * n), *c = doubles(n * n);
  fill(a, n, 0);
  fill(b, n, 1000000);
  for (int i = 0; i < n * n; i++) c[i] = 0;
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < n; i += block)
    for (int j = 0; j < n; j += block)
      for (int k = 0; k < n; k += block)
#pragma omp task depend(in : a[i * n + k], b[k * n + j]) depend(inout : c[i * n + j])
        multiply_block(a + i * n + k, b + k * n + j, c + i * n + j, n);
  return report(c, n);
}
