// SPDX-License-Identifier: Apache-2.0
// Small computations that wait for memory: sparse, stencil, stream, chains of pointers.
#include <math.h>
#include <string.h>

#include "programs.h"

// Solves the five-point Laplacian on a square of n x n points, stored by compressed rows.
int run_conjugate_gradient(int argc, char** argv) {
  long n = number_argument(argc, argv, 1, 16), steps = number_argument(argc, argv, 2, 40), rows = n * n;
  long* starts = (long*)malloc(sizeof(long) * (size_t)(rows + 1));
  int* columns = (int*)malloc(sizeof(int) * (size_t)(5 * rows));
  double* values = (double*)malloc(sizeof(double) * (size_t)(5 * rows));
  double* vectors = (double*)calloc((size_t)(4 * rows), sizeof(double));
  double *x = vectors, *r = x + rows, *p = r + rows, *q = p + rows;
  long used = 0;
  for (long row = 0; row < rows; ++row) {
    starts[row] = used;
    const long neighbours[] = {row - n, row % n ? row - 1 : -1, row, row % n < n - 1 ? row + 1 : -1, row + n};
    for (int k = 0; k < 5; ++k)
      if (neighbours[k] >= 0 && neighbours[k] < rows) {
        columns[used] = (int)neighbours[k];
        values[used++] = k == 2 ? 4.0 : -1.0;
      }
  }
  starts[rows] = used;
  double rho = 0;
  for (long i = 0; i < rows; ++i) {
    p[i] = r[i] = 1.0 + (double)(i % 7) / 8;
    rho += r[i] * r[i];
  }
  long step = 0;
  for (; step < steps && rho > 1e-20; ++step) {
    double along = 0;
    for (long row = 0; row < rows; ++row) {
      double sum = 0;
      for (long k = starts[row]; k < starts[row + 1]; ++k) sum += values[k] * p[columns[k]];
      q[row] = sum;
      along += sum * p[row];
    }
    double alpha = rho / along, before = rho;
    rho = 0;
    for (long i = 0; i < rows; ++i) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
      rho += r[i] * r[i];
    }
    for (long i = 0; i < rows; ++i) p[i] = r[i] + rho / before * p[i];
  }
  double sum = 0;
  for (long i = 0; i < rows; ++i) sum += x[i];
  printf("steps %ld residual %a sum %a\n", step, sqrt(rho), sum);
  free(starts), free(columns), free(values), free(vectors);
  return 0;
}

int run_stencil(int argc, char** argv) {
  long n = number_argument(argc, argv, 1, 48), steps = number_argument(argc, argv, 2, 8);
  double* from = (double*)calloc((size_t)(n * n), sizeof(double));
  double* to = (double*)calloc((size_t)(n * n), sizeof(double));
  for (long i = 0; i < n; ++i) from[i] = to[i] = (double)(i % 5);
  for (long step = 0; step < steps; ++step) {
    for (long i = 1; i < n - 1; ++i)
      for (long j = 1; j < n - 1; ++j)
        to[i * n + j] = 0.25 * (from[(i - 1) * n + j] + from[(i + 1) * n + j] + from[i * n + j - 1] +
                                from[i * n + j + 1]);
    double* kept = from;
    from = to;
    to = kept;
  }
  double sum = 0;
  for (long i = 0; i < n * n; ++i) sum += from[i] * (double)(i % 3 + 1);
  printf("stencil %a\n", sum);
  free(from), free(to);
  return 0;
}

int run_triad(int argc, char** argv) {
  long n = number_argument(argc, argv, 1, 4096), rounds = number_argument(argc, argv, 2, 4);
  double* a = (double*)malloc(sizeof(double) * (size_t)n * 3);
  double *b = a + n, *c = b + n;
  for (long i = 0; i < n; ++i) a[i] = 0, b[i] = 1 + (double)(i % 10), c[i] = 2;
  for (long round = 0; round < rounds; ++round) {
    for (long i = 0; i < n; ++i) a[i] = b[i] + 0.5 * c[i];
    double* kept = a;
    a = c, c = kept;
  }
  double sum = 0;
  for (long i = 0; i < n; ++i) sum += a[i] + b[i] - c[i];
  printf("triad %a\n", sum);
  free(a < b ? (a < c ? a : c) : (b < c ? b : c));
  return 0;
}

int run_pointer_chase(int argc, char** argv) {
  long count = number_argument(argc, argv, 1, 2048), steps = number_argument(argc, argv, 2, 20000);
  typedef struct Line {
    struct Line* next;
    long number, padding[6];
  } Line;
  Line* lines = (Line*)calloc((size_t)count, sizeof(Line));
  long* order = (long*)malloc(sizeof(long) * (size_t)count);
  uint64_t state = 9;
  for (long i = 0; i < count; ++i) order[i] = i;
  for (long i = count - 1; i > 0; --i) {
    long other = (long)(next_random(&state) % (uint64_t)(i + 1)), kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  for (long i = 0; i < count; ++i) {
    lines[order[i]].next = &lines[order[(i + 1) % count]];
    lines[order[i]].number = i;
  }
  Line* at = lines;
  long sum = 0;
  for (long i = 0; i < steps; ++i) {
    sum += at->number ^ i;
    at = at->next;
  }
  printf("chase %ld %ld\n", sum, at->number);
  free(lines), free(order);
  return 0;
}
