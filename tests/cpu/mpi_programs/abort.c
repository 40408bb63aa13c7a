/* SPDX-License-Identifier: Apache-2.0 */
/* The last rank gives up while the others wait for it. */
#include <mpi.h>

#include "programs.h"

int abort_job(int argc, char **argv) {
  int rank, size, value;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == size - 1) MPI_Abort(MPI_COMM_WORLD, 7);
  MPI_Recv(&value, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
