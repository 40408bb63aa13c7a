/* SPDX-License-Identifier: Apache-2.0 */
/* MPI and OpenMP together: each rank adds up its part with threads. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "programs.h"

int hybrid(int argc, char **argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 2;
  int provided, rank, size;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  long mine = 0, all = 0;
  for (int step = 0; step < 3; ++step) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16) reduction(+ : mine)
    for (int index = 0; index < 200; ++index) mine += (long)index * (rank + 1) * (step + 1);
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("step %d sum %ld\n", step, all);
  }
  if (rank == 0) printf("level %d\n", provided >= MPI_THREAD_FUNNELED);
  MPI_Finalize();
  return 0;
}
