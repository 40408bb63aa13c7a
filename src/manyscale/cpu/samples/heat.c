// SPDX-License-Identifier: Apache-2.0
// A plate that is hot on one side, until it is nearly in balance: heat THREADS SIZE STEPS.
// Jacobi's iteration on a square grid, rows divided among OpenMP threads; prints the heat that is left to move.
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "manyscale.h"

static double *grid(int size) {
  double *cells = calloc((size_t)size * size, sizeof *cells);
  if (cells == NULL) {
    fprintf(stderr, "heat: no memory for %d x %d cells\n", size, size);
    exit(2);
  }
  for (int row = 0; row < size; ++row) cells[(size_t)row * size] = 100.0;
  return cells;
}

// The new value of each cell is the mean of its neighbours; gives the largest change.
static double step(const double *from, double *to, int size) {
  double change = 0.0;
#pragma omp parallel for schedule(static) reduction(max : change)
  for (int row = 1; row < size - 1; ++row) {
    const double *above = from + (size_t)(row - 1) * size, *here = above + size, *below = here + size;
    double *out = to + (size_t)row * size;
    for (int column = 1; column < size - 1; ++column) {
      const double mean = 0.25 * (above[column] + below[column] + here[column - 1] + here[column + 1]);
      change = fmax(change, fabs(mean - here[column]));
      out[column] = mean;
    }
  }
  return change;
}

// How many rows are warm, counted by threads that take rows as they come.
static int warm_rows(const double *cells, int size) {
  int warm = 0;
#pragma omp parallel for schedule(dynamic, 4)
  for (int row = 1; row < size - 1; ++row) {
    double sum = 0.0;
    for (int column = 1; column < size - 1; ++column) sum += cells[(size_t)row * size + column];
    if (sum > size) {
#pragma omp critical
      ++warm;
    }
  }
  return warm;
}

int main(int count, char **arguments) {
  const int threads = count > 1 ? atoi(arguments[1]) : omp_get_max_threads();
  const int size = count > 2 ? atoi(arguments[2]) : 64;
  const int steps = count > 3 ? atoi(arguments[3]) : 10;
  if (threads < 1 || size < 3 || size > 8192 || steps < 1) {
    fprintf(stderr, "heat: write heat THREADS SIZE STEPS\n");
    return 1;
  }
  omp_set_num_threads(threads);
  double *now = grid(size), *next = grid(size), change = 0.0;
  MANYSCALE_BEGIN("iteration");
  for (int i = 0; i < steps; ++i) {
    change = step(now, next, size);
    double *old = now;
    now = next;
    next = old;
  }
  MANYSCALE_END("iteration");
  const int warm = warm_rows(now, size);
  printf("%d steps on %d x %d cells: last change %.6f, %d warm rows\n", steps, size, size, change, warm);
  return 0;
}
