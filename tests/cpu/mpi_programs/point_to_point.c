/* SPDX-License-Identifier: Apache-2.0 */
/* Every way to send and receive, with messages short and long. */
#include <stdlib.h>
#include <string.h>

#include "programs.h"
#include "report.h"

static int *filled(int count, int seed) {
  int *values = malloc((size_t)count * sizeof *values);
  for (int index = 0; index < count; ++index) values[index] = seed * 1009 + index * 7;
  return values;
}

/* Around the ring, with any two calls for sending and receiving. */
static void ring(int count) {
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  int *mine = filled(count, rank), *theirs = calloc((size_t)count, sizeof *theirs);
  if (size == 1) {
    memcpy(theirs, mine, (size_t)count * sizeof *mine); /* a rank that sends to itself would wait for itself */
  } else if (rank % 2 == 0) {
    MPI_Send(mine, count, MPI_INT, next, 1, MPI_COMM_WORLD);
    MPI_Recv(theirs, count, MPI_INT, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(theirs, count, MPI_INT, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(mine, count, MPI_INT, next, 1, MPI_COMM_WORLD);
  }
  report("ring", digest(theirs, count));
  MPI_Sendrecv(mine, count, MPI_INT, next, 2, theirs, count, MPI_INT, previous, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  report("sendrecv", digest(theirs, count));
  MPI_Sendrecv_replace(mine, count, MPI_INT, previous, 3, next, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  report("sendrecv_replace", digest(mine, count));
  free(mine);
  free(theirs);
}

/* All to all with requests; messages of one pair arrive in their order. */
static void requests(int count) {
  MPI_Request *all = malloc(4 * (size_t)size * sizeof *all);
  int *first = malloc((size_t)size * (size_t)count * sizeof *first), *second = malloc((size_t)size * sizeof *second);
  int **sent = malloc((size_t)size * sizeof *sent);
  for (int other = 0; other < size; ++other) {
    MPI_Irecv(first + (size_t)other * (size_t)count, count, MPI_INT, other, 5, MPI_COMM_WORLD, &all[2 * other]);
    MPI_Irecv(second + other, 1, MPI_INT, other, 5, MPI_COMM_WORLD, &all[2 * other + 1]);
  }
  for (int other = 0; other < size; ++other) {
    sent[other] = filled(count, 100 * rank + other);
    MPI_Isend(sent[other], count, MPI_INT, other, 5, MPI_COMM_WORLD, &all[2 * size + 2 * other]);
    MPI_Issend(&rank, 1, MPI_INT, other, 5, MPI_COMM_WORLD, &all[2 * size + 2 * other + 1]);
  }
  MPI_Waitall(4 * size, all, MPI_STATUSES_IGNORE);
  report("waitall", digest(first, size * count) + digest(second, size));
  int nulls = 0;
  for (int index = 0; index < 4 * size; ++index) nulls += all[index] == MPI_REQUEST_NULL;
  report("null requests", nulls);
  for (int other = 0; other < size; ++other) free(sent[other]);
  free(sent);
  free(first);
  free(second);
  free(all);
}

/* Rank 0 takes what comes, in whatever order. */
static void wildcards(void) {
  long sum = 0;
  if (rank == 0) {
    for (int message = 0; message < 3 * (size - 1); ++message) {
      MPI_Status status;
      MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      int count, values[64];
      MPI_Get_count(&status, MPI_INT, &count);
      MPI_Recv(values, count, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
      sum += digest(values, count) * (status.MPI_TAG + 1) + status.MPI_SOURCE * count;
    }
  } else {
    for (int tag = 0; tag < 3; ++tag) {
      int *values = filled(rank + tag, rank);
      MPI_Send(values, rank + tag, MPI_INT, 0, tag, MPI_COMM_WORLD);
      free(values);
    }
  }
  report("wildcards", sum);
  int flag = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  report("iprobe finds nothing", flag);
}

/* One at a time, some at a time, and by asking. */
static void any_and_some(void) {
  MPI_Request receives[16];
  int values[16], done = 0;
  const int other = (rank + 1) % size, from = (rank + size - 1) % size;
  for (int index = 0; index < 16; ++index)
    MPI_Irecv(&values[index], 1, MPI_INT, from, index, MPI_COMM_WORLD, &receives[index]);
  for (int index = 15; index >= 0; --index) {
    const int value = 1000 * rank + index;
    MPI_Send(&value, 1, MPI_INT, other, index, MPI_COMM_WORLD);
  }
  long sum = 0;
  for (int turn = 0; turn < 4; ++turn) {
    int index;
    MPI_Status status;
    MPI_Waitany(16, receives, &index, &status);
    sum += status.MPI_TAG == index && status.MPI_SOURCE == from && values[index] == 1000 * from + index;
    ++done;
  }
  while (done < 12) {
    int count, indices[16];
    MPI_Status statuses[16];
    MPI_Waitsome(16, receives, &count, indices, statuses);
    for (int i = 0; i < count; ++i) sum += statuses[i].MPI_TAG == indices[i];
    done += count;
  }
  while (done < 16) {
    int index, flag;
    MPI_Testany(16, receives, &index, &flag, MPI_STATUS_IGNORE);
    if (flag && index != MPI_UNDEFINED) ++done, ++sum;
  }
  int flag = 0, index = 0, count = 0;
  MPI_Testall(16, receives, &flag, MPI_STATUSES_IGNORE);
  MPI_Waitany(16, receives, &index, MPI_STATUS_IGNORE);
  MPI_Testsome(16, receives, &count, values, MPI_STATUSES_IGNORE);
  report("any and some", 100 * sum + 10 * flag + (index == MPI_UNDEFINED) + (count == MPI_UNDEFINED));
}

static void persistent(void) {
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  int out[600], in[600];
  long sum = 0;
  MPI_Request both[2];
  MPI_Recv_init(in, 600, MPI_INT, previous, 8, MPI_COMM_WORLD, &both[0]);
  MPI_Send_init(out, 600, MPI_INT, next, 8, MPI_COMM_WORLD, &both[1]);
  for (int turn = 0; turn < 5; ++turn) {
    for (int index = 0; index < 600; ++index) out[index] = turn * rank + index;
    MPI_Startall(2, both);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    sum += digest(in, 600);
  }
  MPI_Request_free(&both[0]);
  MPI_Request_free(&both[1]);
  report("persistent", sum + (both[0] == MPI_REQUEST_NULL));
}

static void other_modes(void) {
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  int *buffer = malloc(100000), *detached, bytes, in[2000], *out = filled(2000, rank);
  MPI_Buffer_attach(buffer, 100000);
  MPI_Bsend(out, 2000, MPI_INT, next, 4, MPI_COMM_WORLD);
  MPI_Bsend(out, 10, MPI_INT, next, 4, MPI_COMM_WORLD);
  MPI_Recv(in, 2000, MPI_INT, previous, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  long sum = digest(in, 2000);
  MPI_Recv(in, 2000, MPI_INT, previous, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  sum += digest(in, 10);
  MPI_Buffer_detach(&detached, &bytes);
  report("bsend", sum + (detached == buffer) + bytes);
  free(buffer);
  MPI_Request request;
  MPI_Irecv(in, 2000, MPI_INT, previous, 6, MPI_COMM_WORLD, &request);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Rsend(out, 2000, MPI_INT, next, 6, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  report("rsend", digest(in, 2000));
  MPI_Status status;
  int cancelled;
  MPI_Irecv(in, 1, MPI_INT, previous, 77, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  report("cancel", cancelled);
  MPI_Recv(in, 5, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
  MPI_Send(in, 5, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
  int count;
  MPI_Get_count(&status, MPI_INT, &count);
  report("nobody", (status.MPI_SOURCE == MPI_PROC_NULL) + 2 * (status.MPI_TAG == MPI_ANY_TAG) + 4 * count);
  free(out);
}

/* More than fits between two ranks, sent to one that is not listening yet. */
static void flood(void) {
  long sum = 0;
  if (rank == 0) {
    int values[900];
    for (int other = size - 1; other > 0; --other)
      for (int message = 0; message < 50; ++message) {
        MPI_Recv(values, 900, MPI_INT, other, message % 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += digest(values, 900) + message;
      }
  } else {
    for (int message = 0; message < 50; ++message) {
      int *values = filled(900, rank + message);
      MPI_Send(values, 900, MPI_INT, 0, message % 3, MPI_COMM_WORLD);
      free(values);
    }
  }
  report("flood", sum);
}

int point_to_point(int argc, char **argv) {
  begin(&argc, &argv);
  static const int counts[] = {0, 1, 1000, 1024, 1025, 100000};
  for (int index = 0; index < 6; ++index) {
    ring(counts[index]);
    requests(counts[index] / 4);
  }
  wildcards();
  any_and_some();
  persistent();
  other_modes();
  flood();
  end();
  return 0;
}
