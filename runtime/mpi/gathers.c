/* SPDX-License-Identifier: Apache-2.0 */
/* Gather, scatter, and everybody to everybody. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* How many elements each rank gives or gets, and where they are: the same for all, or by rank. */
struct share {
  const int *counts, *displacements;
  int count;
};

static int count_of(struct share share, int rank) { return share.counts ? share.counts[rank] : share.count; }

static unsigned char *part_of(const void *elements, struct share share, int rank, MPI_Datatype type) {
  return msmpi_element(elements, share.counts ? (ptrdiff_t)share.displacements[rank] : (ptrdiff_t)rank * share.count, type);
}

static struct share each(int count) { return (struct share){NULL, NULL, count}; }
static struct share listed(const int counts[], const int displacements[]) { return (struct share){counts, displacements, 0}; }

static int check_share(struct share share, MPI_Datatype type, MPI_Comm comm) {
  int error = msmpi_check_buffer(0, type);
  for (int rank = 0; rank < comm->size && !error; ++rank) error = msmpi_check_buffer(count_of(share, rank), type);
  return error;
}

/* The root asks everybody at once; the others send. */
static int gather(const void *data, int count, MPI_Datatype type, void *into, struct share share,
                  MPI_Datatype into_type, int root, MPI_Comm comm) {
  int error = msmpi_check_communicator(comm);
  if (!error) error = msmpi_check_root(root, comm);
  if (!error && data != MPI_IN_PLACE) error = msmpi_check_buffer(count, type);
  if (!error && comm->rank == root) error = check_share(share, into_type, comm);
  if (error) return error;
  if (comm->rank != root) {
    msmpi_send(data, count, type, root, comm);
    return MPI_SUCCESS;
  }
  MPI_Request *requests = msmpi_allocate((size_t)comm->size * sizeof *requests);
  for (int rank = 0; rank < comm->size; ++rank) {
    unsigned char *part = part_of(into, share, rank, into_type);
    requests[rank] = MPI_REQUEST_NULL;
    if (rank != root)
      requests[rank] = msmpi_start_receive(part, count_of(share, rank), into_type, rank, 0, comm, comm->context + 1);
    else if (data != MPI_IN_PLACE)
      msmpi_copy(data, (size_t)count, type, part, (size_t)count_of(share, rank), into_type);
  }
  for (int rank = 0; rank < comm->size; ++rank) {
    const int failed = msmpi_wait(&requests[rank], MPI_STATUS_IGNORE);
    if (failed) error = failed;
  }
  free(requests);
  return error;
}

static void scatter_shares(const void *data, struct share share, MPI_Datatype type, void *into, int into_count,
                           MPI_Datatype into_type, int root, MPI_Comm comm) {
  if (comm->rank != root) {
    msmpi_receive(into, into_count, into_type, root, comm);
    return;
  }
  MPI_Request *requests = msmpi_allocate((size_t)comm->size * sizeof *requests);
  for (int rank = 0; rank < comm->size; ++rank) {
    const unsigned char *part = part_of(data, share, rank, type);
    requests[rank] = MPI_REQUEST_NULL;
    if (rank != root)
      requests[rank] = msmpi_start_send(part, count_of(share, rank), type, rank, 0, comm, comm->context + 1,
                                        MODE_STANDARD);
    else if (into != MPI_IN_PLACE)
      msmpi_copy(part, (size_t)count_of(share, rank), type, into, (size_t)into_count, into_type);
  }
  for (int rank = 0; rank < comm->size; ++rank) msmpi_wait(&requests[rank], MPI_STATUS_IGNORE);
  free(requests);
}

void msmpi_scatterv(const void *data, const int counts[], const int displacements[], MPI_Datatype type, void *into,
                    int into_count, MPI_Datatype into_type, int root, MPI_Comm comm) {
  scatter_shares(data, listed(counts, displacements), type, into, into_count, into_type, root, comm);
}

static int scatter(const void *data, struct share share, MPI_Datatype type, void *into, int into_count,
                   MPI_Datatype into_type, int root, MPI_Comm comm) {
  int error = msmpi_check_communicator(comm);
  if (!error) error = msmpi_check_root(root, comm);
  if (!error && into != MPI_IN_PLACE) error = msmpi_check_buffer(into_count, into_type);
  if (!error && comm->rank == root) error = check_share(share, type, comm);
  if (!error) scatter_shares(data, share, type, into, into_count, into_type, root, comm);
  return error;
}

/* Around a ring: each rank passes on what it got last. */
static void allgather_shares(void *into, struct share share, MPI_Datatype type, MPI_Comm comm) {
  const int next = (comm->rank + 1) % comm->size, previous = (comm->rank + comm->size - 1) % comm->size;
  for (int step = 0; step < comm->size - 1; ++step) {
    const int sent = (comm->rank + comm->size - step) % comm->size;
    const int received = (comm->rank + comm->size - step - 1) % comm->size;
    msmpi_exchange(part_of(into, share, sent, type), count_of(share, sent), type, next,
                   part_of(into, share, received, type), count_of(share, received), type, previous, comm);
  }
}

void msmpi_allgather(const void *data, int bytes, void *into, MPI_Comm comm) {
  memcpy((unsigned char *)into + (ptrdiff_t)comm->rank * bytes, data, (size_t)bytes);
  allgather_shares(into, each(bytes), MPI_BYTE, comm);
}

static int allgather(const void *data, int count, MPI_Datatype type, void *into, struct share share,
                     MPI_Datatype into_type, MPI_Comm comm) {
  int error = msmpi_check_communicator(comm);
  if (!error && data != MPI_IN_PLACE) error = msmpi_check_buffer(count, type);
  if (!error) error = check_share(share, into_type, comm);
  if (error) return error;
  if (data != MPI_IN_PLACE)
    msmpi_copy(data, (size_t)count, type, part_of(into, share, comm->rank, into_type),
               (size_t)count_of(share, comm->rank), into_type);
  allgather_shares(into, share, into_type, comm);
  return MPI_SUCCESS;
}

/* In step k each rank sends to the one k above it and receives from the one k below. */
static int alltoall(const void *data, struct share share, MPI_Datatype type, void *into, struct share into_share,
                    MPI_Datatype into_type, MPI_Comm comm) {
  int error = msmpi_check_communicator(comm);
  if (!error) error = check_share(into_share, into_type, comm);
  if (!error && data != MPI_IN_PLACE) error = check_share(share, type, comm);
  if (error) return error;
  unsigned char *copy = NULL;
  if (data == MPI_IN_PLACE) {
    /* What is sent is copied first, without gaps, one rank's after the other's. */
    size_t all = 0;
    for (int rank = 0; rank < comm->size; ++rank) all += (size_t)count_of(into_share, rank) * into_type->bytes;
    copy = msmpi_allocate(all);
    unsigned char *end = copy;
    for (int rank = 0; rank < comm->size; ++rank) {
      const size_t bytes = (size_t)count_of(into_share, rank) * into_type->bytes;
      msmpi_pack(part_of(into, into_share, rank, into_type), bytes, into_type, end);
      end += bytes;
    }
  }
  for (int step = 0; step < comm->size; ++step) {
    const int to = (comm->rank + step) % comm->size, from = (comm->rank + comm->size - step) % comm->size;
    const unsigned char *sent = copy;
    size_t count = copy ? (size_t)count_of(into_share, to) * into_type->bytes : (size_t)count_of(share, to);
    MPI_Datatype sent_type = copy ? MPI_BYTE : type;
    if (copy)
      for (int rank = 0; rank < to; ++rank) sent += (size_t)count_of(into_share, rank) * into_type->bytes;
    else
      sent = part_of(data, share, to, type);
    unsigned char *part = part_of(into, into_share, from, into_type);
    if (step == 0)
      msmpi_copy(sent, count, sent_type, part, (size_t)count_of(into_share, from), into_type);
    else
      msmpi_exchange(sent, (int)count, sent_type, to, part, count_of(into_share, from), into_type, from, comm);
  }
  free(copy);
  return MPI_SUCCESS;
}

int MPI_Gather(const void *data, int count, MPI_Datatype type, void *into, int into_count, MPI_Datatype into_type,
               int root, MPI_Comm comm) {
  CALL(Gather, comm, gather(data, count, type, into, each(into_count), into_type, root, comm));
}

int MPI_Gatherv(const void *data, int count, MPI_Datatype type, void *into, const int counts[], const int displacements[],
                MPI_Datatype into_type, int root, MPI_Comm comm) {
  CALL(Gatherv, comm, gather(data, count, type, into, listed(counts, displacements), into_type, root, comm));
}

int MPI_Scatter(const void *data, int count, MPI_Datatype type, void *into, int into_count, MPI_Datatype into_type,
                int root, MPI_Comm comm) {
  CALL(Scatter, comm, scatter(data, each(count), type, into, into_count, into_type, root, comm));
}

int MPI_Scatterv(const void *data, const int counts[], const int displacements[], MPI_Datatype type, void *into,
                 int into_count, MPI_Datatype into_type, int root, MPI_Comm comm) {
  CALL(Scatterv, comm, scatter(data, listed(counts, displacements), type, into, into_count, into_type, root, comm));
}

int MPI_Allgather(const void *data, int count, MPI_Datatype type, void *into, int into_count,
                  MPI_Datatype into_type, MPI_Comm comm) {
  CALL(Allgather, comm, allgather(data, count, type, into, each(into_count), into_type, comm));
}

int MPI_Allgatherv(const void *data, int count, MPI_Datatype type, void *into, const int counts[],
                   const int displacements[], MPI_Datatype into_type, MPI_Comm comm) {
  CALL(Allgatherv, comm, allgather(data, count, type, into, listed(counts, displacements), into_type, comm));
}

int MPI_Alltoall(const void *data, int count, MPI_Datatype type, void *into, int into_count, MPI_Datatype into_type,
                 MPI_Comm comm) {
  CALL(Alltoall, comm, alltoall(data, each(count), type, into, each(into_count), into_type, comm));
}

int MPI_Alltoallv(const void *data, const int counts[], const int displacements[], MPI_Datatype type, void *into,
                  const int into_counts[], const int into_displacements[], MPI_Datatype into_type, MPI_Comm comm) {
  CALL(Alltoallv, comm,
       alltoall(data, listed(counts, displacements), type, into, listed(into_counts, into_displacements), into_type, comm));
}
