// SPDX-License-Identifier: Apache-2.0
// Chooses one of the programs: elastic NAME THREADS [SIZE].
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs.h"

struct entry {
  const char *name;
  int (*run)(int size);
  int size;
};
static const struct entry entries[] = {
    {"matrix", matrix, 64},
    {"matrix_tasks", matrix_tasks, 64},
    {"cholesky_tasks", cholesky_tasks, 96},
    {"k_means", k_means, 4096},
    {"hotspot", hotspot, 96},
    {"black_scholes", black_scholes, 2048},
    {"black_scholes_tasks", black_scholes_tasks, 256},
    {"stream_cluster", stream_cluster, 1024},
    {"swaptions", swaptions, 16},
    {"swaptions_tasks", swaptions_tasks, 60},
    {"canneal", canneal, 2048},
    {"ferret", ferret, 48},
    {"hydrodynamics", hydrodynamics, 12},
    {"hydrodynamics_tasks", hydrodynamics_tasks, 12},
    {"stencil_threads", stencil_threads, 96},
    {"queue_threads", queue_threads, 48},
};
enum { count = sizeof entries / sizeof entries[0] };

double *doubles(long count) {
  double *memory = aligned_alloc(4096, ((size_t)count * sizeof(double) + 4095) / 4096 * 4096);
  if (memory == NULL) {
    fprintf(stderr, "no memory for %ld numbers\n", count);
    exit(1);
  }
  return memory;
}

int main(int arguments, char **argument) {
  for (int i = 0; arguments > 2 && i < count; i++)
    if (strcmp(argument[1], entries[i].name) == 0) {
      omp_set_dynamic(0);
      omp_set_num_threads(atoi(argument[2]));
      return entries[i].run(arguments > 3 ? atoi(argument[3]) : entries[i].size);
    }
  fprintf(stderr, "usage: elastic NAME THREADS [SIZE], where NAME is one of");
  for (int i = 0; i < count; i++) fprintf(stderr, " %s", entries[i].name);
  fprintf(stderr, "\n");
  return 2;
}
