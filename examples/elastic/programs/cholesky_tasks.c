// SPDX-License-Identifier: Apache-2.0
// Cholesky factorisation by blocks, as tasks that depend on the blocks they read and write.
#include <math.h>
#include <stdio.h>

#include "programs.h"

enum { block = 16 };

static void factorise(double *a, int n) {
  for (int j = 0; j < block; j++) {
    for (int k = 0; k < j; k++) a[j * n + j] -= a[j * n + k] * a[j * n + k];
    a[j * n + j] = sqrt(a[j * n + j]);
    for (int i = j + 1; i < block; i++) {
      for (int k = 0; k < j; k++) a[i * n + j] -= a[i * n + k] * a[j * n + k];
      a[i * n + j] /= a[j * n + j];
    }
  }
}

static void solve(const double *l, double *b, int n) {
  for (int i = 0; i < block; i++)
    for (int j = 0; j < block; j++) {
      for (int k = 0; k < j; k++) b[i * n + j] -= b[i * n + k] * l[j * n + k];
      b[i * n + j] /= l[j * n + j];
    }
}

static void update(const double *a, const double *b, double *c, int n) {
  for (int i = 0; i < block; i++)
    for (int j = 0; j < block; j++) {
      double sum = 0;
      for (int k = 0; k < block; k++) sum += a[i * n + k] * b[j * n + k];
      c[i * n + j] -= sum;
    }
}

int cholesky_tasks(int n) {
  n = n / block * block;
  double *a = doubles(n * n);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) a[i * n + j] = uniform((uint64_t)(i + j)) + (i == j ? n : 0);
#pragma omp parallel
#pragma omp single
  for (int k = 0; k < n; k += block) {
#pragma omp task depend(inout : a[k * n + k])
    factorise(a + k * n + k, n);
    for (int i = k + block; i < n; i += block)
#pragma omp task depend(in : a[k * n + k]) depend(inout : a[i * n + k])
      solve(a + k * n + k, a + i * n + k, n);
    for (int i = k + block; i < n; i += block)
      for (int j = k + block; j <= i; j += block)
#pragma omp task depend(in : a[i * n + k], a[j * n + k]) depend(inout : a[i * n + j])
        update(a + i * n + k, a + j * n + k, a + i * n + j, n);
  }
  double sum = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) sum += a[i * n + j];
  printf("cholesky %d: %.12g\n", n, sum);
  return 0;
}
