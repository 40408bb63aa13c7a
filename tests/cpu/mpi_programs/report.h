/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs here share: rank 0 prints one line for each thing tried, with a number that depends on what all
 * ranks saw, so that two implementations of MPI can be compared. */
#ifndef REPORT_H
#define REPORT_H

#include <mpi.h>
#include <stdio.h>

static int rank, size;
static MPI_Comm reports; /* of its own, so that no wildcard takes what belongs to a report */

static void begin(int *argc, char ***argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &reports);
}

static void end(void) {
  MPI_Comm_free(&reports);
  MPI_Finalize();
}

/* Prints the sum of all ranks' values, each weighted by its rank. Uses point-to-point messages only, so that a broken
 * reduction cannot hide itself. */
static void report(const char *what, long value) {
  if (rank != 0) {
    MPI_Send(&value, 1, MPI_LONG, 0, 0, reports);
    return;
  }
  long sum = value;
  for (int other = 1; other < size; ++other) {
    long theirs;
    MPI_Recv(&theirs, 1, MPI_LONG, other, 0, reports, MPI_STATUS_IGNORE);
    sum += theirs * (2 * other + 1);
  }
  printf("%s %ld\n", what, sum);
}

/* A number that depends on every value and its position. */
__attribute__((unused)) static long digest(const int *values, int count) {
  long result = count;
  for (int index = 0; index < count; ++index) result = (result * 31 + values[index]) % 1000000007;
  return result;
}

#endif
