/* SPDX-License-Identifier: Apache-2.0 */
/* Barrier, broadcast and reductions. */
#include <stdlib.h>

#include "internal.h"

static MPI_Request start_send(const void *data, int count, MPI_Datatype type, int to, MPI_Comm comm) {
  return msmpi_start_send(data, count, type, to, 0, comm, comm->context + 1, MODE_STANDARD);
}

static MPI_Request start_receive(void *data, int count, MPI_Datatype type, int from, MPI_Comm comm) {
  return msmpi_start_receive(data, count, type, from, 0, comm, comm->context + 1);
}

void msmpi_send(const void *data, int count, MPI_Datatype type, int to, MPI_Comm comm) {
  MPI_Request request = start_send(data, count, type, to, comm);
  msmpi_wait(&request, MPI_STATUS_IGNORE);
}

void msmpi_receive(void *data, int count, MPI_Datatype type, int from, MPI_Comm comm) {
  MPI_Request request = start_receive(data, count, type, from, comm);
  msmpi_wait(&request, MPI_STATUS_IGNORE);
}

void msmpi_exchange(const void *data, int count, MPI_Datatype type, int to, void *into, int most,
                    MPI_Datatype into_type, int from, MPI_Comm comm) {
  MPI_Request receive = start_receive(into, most, into_type, from, comm);
  MPI_Request send = start_send(data, count, type, to, comm);
  msmpi_wait(&send, MPI_STATUS_IGNORE);
  msmpi_wait(&receive, MPI_STATUS_IGNORE);
}

struct room msmpi_make_room(int count, MPI_Datatype type) {
  /* Operations write whole elements, with the padding at their end. */
  ptrdiff_t low = type->lower < 0 ? type->lower : 0, high = type->lower + type->extent;
  for (size_t index = 0; index < type->block_count; ++index) {
    const struct block *block = &type->blocks[index];
    if (block->offset < low) low = block->offset;
    if (block->offset + (ptrdiff_t)block->bytes > high) high = block->offset + (ptrdiff_t)block->bytes;
  }
  unsigned char *memory = msmpi_allocate((size_t)(high - low + (count > 1 ? (count - 1) * type->extent : 0)));
  return (struct room){memory, memory - low};
}

int msmpi_check_root(int root, MPI_Comm comm) {
  if (root >= 0 && root < comm->size) return MPI_SUCCESS;
  return msmpi_error(MPI_ERR_ROOT, "root %d is not one of 0 to %d", root, comm->size - 1);
}

static int check(int count, MPI_Datatype type, int root, MPI_Comm comm) {
  int error = msmpi_check_communicator(comm);
  if (!error) error = msmpi_check_root(root, comm);
  if (!error) error = msmpi_check_buffer(count, type);
  return error;
}

static int check_reduction(int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  const int error = check(count, type, root, comm);
  return error ? error : msmpi_check_operation(op, type);
}

/* In round k each rank notifies the one 2^k above it, and is notified by the one 2^k below. */
void msmpi_barrier(MPI_Comm comm) {
  for (int distance = 1; distance < comm->size; distance *= 2)
    msmpi_exchange(NULL, 0, MPI_BYTE, (comm->rank + distance) % comm->size, NULL, 0, MPI_BYTE,
                   (comm->rank + comm->size - distance) % comm->size, comm);
}

/* A binomial tree, its root first. */
static void broadcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const int relative = (comm->rank + comm->size - root) % comm->size;
  int mask = 1;
  for (; mask < comm->size; mask *= 2) {
    if (!(relative & mask)) continue;
    msmpi_receive(data, count, type, (comm->rank + comm->size - mask) % comm->size, comm);
    break;
  }
  for (mask /= 2; mask > 0; mask /= 2)
    if (relative + mask < comm->size) msmpi_send(data, count, type, (comm->rank + mask) % comm->size, comm);
}

/* elements = elements op later, with `later` from higher ranks; `later` is used up. */
static void combine_with_later(void *elements, void *later, int count, MPI_Datatype type, MPI_Op op) {
  msmpi_combine(elements, later, count, type, op);
  msmpi_copy(later, (size_t)count, type, elements, (size_t)count, type);
}

/* The broadcast's tree backwards. Neighbours in it hold consecutive ranks, so the order is kept from rank 0 on; for an
 * operation that does not commute the tree's root is therefore 0. */
void msmpi_reduce(void *elements, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  const int top = op->commutes ? root : 0;
  const int relative = (comm->rank + comm->size - top) % comm->size;
  struct room other = msmpi_make_room(count, type);
  for (int mask = 1; mask < comm->size; mask *= 2) {
    if (relative & mask) {
      msmpi_send(elements, count, type, (comm->rank + comm->size - mask) % comm->size, comm);
      break;
    }
    if (relative + mask >= comm->size) continue;
    msmpi_receive(other.elements, count, type, (comm->rank + mask) % comm->size, comm);
    combine_with_later(elements, other.elements, count, type, op);
  }
  if (top != root) {
    if (comm->rank == top) msmpi_send(elements, count, type, root, comm);
    if (comm->rank == root) msmpi_receive(elements, count, type, top, comm);
  }
  free(other.memory);
}

static int reduce(const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  const int error = check_reduction(count, type, op, root, comm);
  if (error) return error;
  if (comm->rank == root) {
    if (data != MPI_IN_PLACE) msmpi_copy(data, (size_t)count, type, result, (size_t)count, type);
    msmpi_reduce(result, count, type, op, root, comm);
  } else {
    struct room own = msmpi_make_room(count, type);
    msmpi_copy(data, (size_t)count, type, own.elements, (size_t)count, type);
    msmpi_reduce(own.elements, count, type, op, root, comm);
    free(own.memory);
  }
  return MPI_SUCCESS;
}

/* Exchanges with the other and combines, so that both have the same; the order of ranks is kept. */
static void combine_both(void *elements, void *other, int count, MPI_Datatype type, MPI_Op op, int rank,
                         MPI_Comm comm) {
  msmpi_exchange(elements, count, type, rank, other, count, type, rank, comm);
  if (rank < comm->rank)
    msmpi_combine(other, elements, count, type, op);
  else
    combine_with_later(elements, other, count, type, op);
}

/* Recursive doubling. Where the number of ranks is not a power of two, the first ranks take part in pairs, for which
 * the odd one acts. */
static int allreduce(const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const int error = check_reduction(count, type, op, 0, comm);
  if (error) return error;
  if (data != MPI_IN_PLACE) msmpi_copy(data, (size_t)count, type, result, (size_t)count, type);
  struct room other = msmpi_make_room(count, type);
  int power = 1;
  while (2 * power <= comm->size) power *= 2;
  const int pairs = comm->size - power;
  const bool paired = comm->rank < 2 * pairs, acts = !paired || comm->rank % 2 == 1;
  if (paired && !acts) {
    msmpi_send(result, count, type, comm->rank + 1, comm);
    msmpi_receive(result, count, type, comm->rank + 1, comm);
  } else {
    if (paired) {
      msmpi_receive(other.elements, count, type, comm->rank - 1, comm);
      msmpi_combine(other.elements, result, count, type, op);
    }
    const int position = paired ? comm->rank / 2 : comm->rank - pairs;
    for (int mask = 1; mask < power; mask *= 2) {
      const int partner = position ^ mask;
      combine_both(result, other.elements, count, type, op, partner < pairs ? 2 * partner + 1 : partner + pairs,
                   comm);
    }
    if (paired) msmpi_send(result, count, type, comm->rank - 1, comm);
  }
  free(other.memory);
  return MPI_SUCCESS;
}

/* Recursive doubling; `own` is the reduction of the ranks met so far, `result` that of those below. */
static int scan(const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                bool exclusive) {
  const int error = check_reduction(count, type, op, 0, comm);
  if (error) return error;
  const size_t elements = (size_t)count;
  struct room own = msmpi_make_room(count, type), other = msmpi_make_room(count, type);
  msmpi_copy(data == MPI_IN_PLACE ? result : data, elements, type, own.elements, elements, type);
  if (!exclusive && data != MPI_IN_PLACE) msmpi_copy(data, elements, type, result, elements, type);
  bool empty = exclusive;
  for (int mask = 1; mask < comm->size; mask *= 2) {
    const int partner = comm->rank ^ mask;
    if (partner >= comm->size) continue;
    msmpi_exchange(own.elements, count, type, partner, other.elements, count, type, partner, comm);
    if (partner > comm->rank) {
      combine_with_later(own.elements, other.elements, count, type, op);
      continue;
    }
    if (empty)
      msmpi_copy(other.elements, elements, type, result, elements, type);
    else
      msmpi_combine(other.elements, result, count, type, op);
    empty = false;
    msmpi_combine(other.elements, own.elements, count, type, op);
  }
  free(own.memory);
  free(other.memory);
  return MPI_SUCCESS;
}

static int reduce_scatter(const void *data, void *result, const int counts[], MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm) {
  int error = check_reduction(0, type, op, 0, comm);
  if (error) return error;
  int *displacements = msmpi_allocate((size_t)comm->size * sizeof *displacements);
  int all = 0;
  for (int rank = 0; rank < comm->size; ++rank) {
    displacements[rank] = all;
    all += counts[rank];
    if (!error) error = msmpi_check_buffer(counts[rank], type);
  }
  if (!error) {
    struct room whole = msmpi_make_room(all, type);
    msmpi_copy(data == MPI_IN_PLACE ? result : data, (size_t)all, type, whole.elements, (size_t)all, type);
    msmpi_reduce(whole.elements, all, type, op, 0, comm);
    msmpi_scatterv(whole.elements, counts, displacements, type, result, counts[comm->rank], type, 0, comm);
    free(whole.memory);
  }
  free(displacements);
  return error;
}

static int reduce_scatter_block(const void *data, void *result, int count, MPI_Datatype type, MPI_Op op,
                                MPI_Comm comm) {
  int error = check_reduction(count, type, op, 0, comm);
  if (error) return error;
  int *counts = msmpi_allocate((size_t)comm->size * sizeof *counts);
  for (int rank = 0; rank < comm->size; ++rank) counts[rank] = count;
  error = reduce_scatter(data, result, counts, type, op, comm);
  free(counts);
  return error;
}

static int barrier(MPI_Comm comm) {
  const int error = msmpi_check_communicator(comm);
  if (!error) msmpi_barrier(comm);
  return error;
}

static int bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const int error = check(count, type, root, comm);
  if (!error) broadcast(data, count, type, root, comm);
  return error;
}

int MPI_Barrier(MPI_Comm comm) { CALL(Barrier, comm, barrier(comm)); }

int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  CALL(Bcast, comm, bcast(data, count, type, root, comm));
}

int MPI_Reduce(const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  CALL(Reduce, comm, reduce(data, result, count, type, op, root, comm));
}

int MPI_Allreduce(const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  CALL(Allreduce, comm, allreduce(data, result, count, type, op, comm));
}

int MPI_Scan(const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  CALL(Scan, comm, scan(data, result, count, type, op, comm, false));
}

int MPI_Exscan(const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  CALL(Exscan, comm, scan(data, result, count, type, op, comm, true));
}

int MPI_Reduce_scatter(const void *data, void *result, const int counts[], MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm) {
  CALL(Reduce_scatter, comm, reduce_scatter(data, result, counts, type, op, comm));
}

int MPI_Reduce_scatter_block(const void *data, void *result, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  CALL(Reduce_scatter_block, comm, reduce_scatter_block(data, result, count, type, op, comm));
}
