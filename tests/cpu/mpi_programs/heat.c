/* SPDX-License-Identifier: Apache-2.0 */
/* Heat on a square plate, Jacobi's method: halos exchanged on a grid of ranks, and a sum every few steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#include "manyscale.h"
#include "programs.h"

int heat(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 48, steps = argc > 2 ? atoi(argv[2]) : 40;
  int rank, size, sizes[2] = {0, 0}, periods[2] = {0, 0}, coordinates[2], up, down, left, right;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, sizes);
  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &grid);
  MPI_Comm_rank(grid, &rank);
  MPI_Cart_coords(grid, rank, 2, coordinates);
  MPI_Cart_shift(grid, 0, 1, &up, &down);
  MPI_Cart_shift(grid, 1, 1, &left, &right);
  const int rows = n * (coordinates[0] + 1) / sizes[0] - n * coordinates[0] / sizes[0];
  const int columns = n * (coordinates[1] + 1) / sizes[1] - n * coordinates[1] / sizes[1];
  const int width = columns + 2;
  double *now = calloc((size_t)(rows + 2) * (size_t)width, sizeof *now);
  double *next = calloc((size_t)(rows + 2) * (size_t)width, sizeof *next);
  if (coordinates[0] == 0)
    for (int j = 0; j < width; ++j) now[j] = next[j] = 1024.0;
  MPI_Datatype column;
  MPI_Type_vector(rows, 1, width, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  for (int step = 0; step < steps; ++step) {
    MPI_Request requests[8];
    MPI_Irecv(&now[1], columns, MPI_DOUBLE, up, 0, grid, &requests[0]);
    MPI_Irecv(&now[(rows + 1) * width + 1], columns, MPI_DOUBLE, down, 1, grid, &requests[1]);
    MPI_Irecv(&now[width], 1, column, left, 2, grid, &requests[2]);
    MPI_Irecv(&now[width + columns + 1], 1, column, right, 3, grid, &requests[3]);
    MPI_Isend(&now[width + 1], columns, MPI_DOUBLE, up, 1, grid, &requests[4]);
    MPI_Isend(&now[rows * width + 1], columns, MPI_DOUBLE, down, 0, grid, &requests[5]);
    MPI_Isend(&now[width + 1], 1, column, left, 3, grid, &requests[6]);
    MPI_Isend(&now[width + columns], 1, column, right, 2, grid, &requests[7]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    MANYSCALE_BEGIN("stencil");
    for (int i = 1; i <= rows; ++i)
      for (int j = 1; j <= columns; ++j)
        next[i * width + j] = 0.25 * (now[(i - 1) * width + j] + now[(i + 1) * width + j] + now[i * width + j - 1] +
                                      now[i * width + j + 1]);
    MANYSCALE_END("stencil");
    double *old = now;
    now = next;
    next = old;
    if (step % 10 != 9) continue;
    /* Whole numbers add up the same in any order. */
    long mine = 0, all = 0;
    for (int i = 1; i <= rows; ++i)
      for (int j = 1; j <= columns; ++j) mine += lrint(now[i * width + j] * 65536.0);
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, grid);
    if (rank == 0) printf("step %d heat %ld\n", step + 1, all);
  }
  MPI_Type_free(&column);
  MPI_Comm_free(&grid);
  MPI_Finalize();
  free(now);
  free(next);
  return 0;
}
