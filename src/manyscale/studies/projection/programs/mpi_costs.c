/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls of the MPI library cost on a machine: two ranks and a few experiments, each between two barriers.
 * Times are those of the simulator's log of calls; ../calibration.py knows the order of the experiments. */
#include <stdlib.h>

#include <mpi.h>

enum { REPETITIONS = 5, MOST = 65536, BLOCKS = 128 };

static const int sizes[] = {0, 64, 1024, 4096, 4104, 16384, MOST};

static int rank;
static char *buffer;

/* Long enough for every message to arrive. */
static void compute(void) {
  for (volatile int step = 0; step < 2000; ++step) continue;
}

static void ping_pong(int bytes) {
  for (int turn = 0; turn < REPETITIONS; ++turn) {
    if (rank == 0) MPI_Send(buffer, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(buffer, bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  }
}

/* The receive is there before the message. */
static void expected(int count, MPI_Datatype type) {
  for (int turn = 0; turn < REPETITIONS; ++turn) {
    MPI_Request request;
    if (rank == 0) {
      compute();
      MPI_Isend(buffer, count, type, 1, 0, MPI_COMM_WORLD, &request);
    } else {
      MPI_Irecv(buffer, count, type, 0, 0, MPI_COMM_WORLD, &request);
      compute();
      compute();
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    compute();
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* The message is there before the receive. */
static void unexpected(int bytes) {
  for (int turn = 0; turn < REPETITIONS; ++turn) {
    if (rank == 0) {
      MPI_Send(buffer, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    } else {
      compute();
      MPI_Recv(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    compute();
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* A message of BLOCKS numbers that are not neighbours in memory. */
static void in_blocks(void) {
  MPI_Datatype column;
  MPI_Type_vector(BLOCKS, 1, 4, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  expected(1, column);
  MPI_Type_free(&column);
}

static void nobody(void) {
  for (int turn = 0; turn < REPETITIONS; ++turn) {
    MPI_Request requests[2];
    MPI_Irecv(buffer, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(buffer, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
}

static void reduction(void) {
  for (int turn = 0; turn < REPETITIONS; ++turn)
    MPI_Reduce_local(buffer, buffer + MOST / 2, 8192 / 8, MPI_DOUBLE, MPI_SUM);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  buffer = calloc(MOST, 1);
  const int count = sizeof sizes / sizeof *sizes;
  for (int index = 0; index < count; ++index) ping_pong(sizes[index]);
  for (int index = 0; index < 4; ++index) expected(sizes[index], MPI_CHAR);
  for (int index = 0; index < 4; ++index) unexpected(sizes[index]);
  in_blocks();
  nobody();
  reduction();
  MPI_Finalize();
  free(buffer);
  return 0;
}
