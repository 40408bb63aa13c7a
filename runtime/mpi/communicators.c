/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: a number that keeps their messages apart, and a list of ranks. */
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

struct manyscale_mpi_communicator manyscale_mpi_world = {.handler = MPI_ERRORS_ARE_FATAL, .name = "MPI_COMM_WORLD"};
struct manyscale_mpi_communicator manyscale_mpi_self = {.handler = MPI_ERRORS_ARE_FATAL, .name = "MPI_COMM_SELF"};

static uint32_t next_context = 4; /* world and self have 0 to 3 */

void msmpi_set_up_communicators(void) {
  manyscale_mpi_world.context = 0;
  manyscale_mpi_world.rank = msmpi_rank;
  manyscale_mpi_world.size = msmpi_size;
  manyscale_mpi_world.uses = manyscale_mpi_self.uses = 1;
  manyscale_mpi_self.context = 2;
  manyscale_mpi_self.size = 1;
  manyscale_mpi_self.members = &msmpi_rank;
}

int msmpi_check_communicator(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return msmpi_error(MPI_ERR_COMM, "it is MPI_COMM_NULL");
  if (comm->size == 0) return msmpi_error(MPI_ERR_COMM, "MPI is not initialized");
  return MPI_SUCCESS;
}

void msmpi_drop_communicator(MPI_Comm comm) {
  if (--comm->uses > 0) return;
  free(comm->members);
  msmpi_free_cartesian(comm->cartesian);
  free(comm);
}

struct choice {
  int colour, key, rank;
  uint32_t next_context;
};

static int compare_choices(const void *one, const void *other) {
  const struct choice *a = one, *b = other;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return a->rank < b->rank ? -1 : a->rank > b->rank;
}

int msmpi_split(MPI_Comm comm, int colour, int key, MPI_Comm *part) {
  if (colour < 0 && colour != MPI_UNDEFINED)
    return msmpi_error(MPI_ERR_ARG, "colour %d is negative and not MPI_UNDEFINED", colour);
  struct choice *choices = msmpi_allocate((size_t)comm->size * sizeof *choices);
  const struct choice own = {colour, key, comm->rank, next_context};
  msmpi_allgather(&own, sizeof own, choices, comm);
  int members = 0;
  for (int rank = 0; rank < comm->size; ++rank) {
    if (choices[rank].next_context > next_context) next_context = choices[rank].next_context;
    if (choices[rank].colour == colour) choices[members++] = choices[rank];
  }
  /* Parts of one split have no rank in common, so they can have the same number. */
  const uint32_t context = next_context;
  next_context += 2;
  *part = MPI_COMM_NULL;
  if (colour != MPI_UNDEFINED) {
    qsort(choices, (size_t)members, sizeof *choices, compare_choices);
    MPI_Comm made = msmpi_allocate(sizeof *made);
    *made = (struct manyscale_mpi_communicator){
        .context = context, .size = members, .handler = comm->handler, .uses = 1,
        .members = msmpi_allocate((size_t)members * sizeof *made->members)};
    for (int rank = 0; rank < members; ++rank) {
      made->members[rank] = msmpi_world_rank(comm, choices[rank].rank);
      if (choices[rank].rank == comm->rank) made->rank = rank;
    }
    *part = made;
  }
  free(choices);
  return MPI_SUCCESS;
}

static int split(MPI_Comm comm, int colour, int key, MPI_Comm *part) {
  const int error = msmpi_check_communicator(comm);
  return error ? error : msmpi_split(comm, colour, key, part);
}

static int duplicate(MPI_Comm comm, MPI_Comm *copy) {
  const int error = split(comm, 0, comm ? comm->rank : 0, copy);
  if (!error) (*copy)->cartesian = msmpi_copy_cartesian(comm->cartesian);
  return error;
}

static int free_communicator(MPI_Comm *comm) {
  const int error = msmpi_check_communicator(*comm);
  if (error) return error;
  if (*comm == MPI_COMM_WORLD || *comm == MPI_COMM_SELF)
    return msmpi_error(MPI_ERR_COMM, "%s cannot be freed", (*comm)->name);
  msmpi_drop_communicator(*comm);
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

static int has_member(MPI_Comm comm, int world_rank) {
  for (int rank = 0; rank < comm->size; ++rank)
    if (msmpi_world_rank(comm, rank) == world_rank) return 1;
  return 0;
}

static int compare(MPI_Comm one, MPI_Comm other, int *result) {
  int error = msmpi_check_communicator(one);
  if (!error) error = msmpi_check_communicator(other);
  if (error) return error;
  *result = one == other ? MPI_IDENT : one->size == other->size ? MPI_CONGRUENT : MPI_UNEQUAL;
  for (int rank = 0; *result != MPI_IDENT && *result != MPI_UNEQUAL && rank < one->size; ++rank) {
    if (msmpi_world_rank(one, rank) != msmpi_world_rank(other, rank)) *result = MPI_SIMILAR;
    if (!has_member(other, msmpi_world_rank(one, rank))) *result = MPI_UNEQUAL;
  }
  return MPI_SUCCESS;
}

static int give_rank(MPI_Comm comm, int *rank) {
  const int error = msmpi_check_communicator(comm);
  if (!error) *rank = comm->rank;
  return error;
}

static int give_size(MPI_Comm comm, int *size) {
  const int error = msmpi_check_communicator(comm);
  if (!error) *size = comm->size;
  return error;
}

static int set_handler(MPI_Comm comm, MPI_Errhandler handler) {
  if (handler != MPI_ERRORS_ARE_FATAL && handler != MPI_ERRORS_RETURN)
    return msmpi_error(MPI_ERR_ARG, "there is no such error handler");
  comm->handler = handler;
  return MPI_SUCCESS;
}

int MPI_Comm_rank(MPI_Comm comm, int *rank) { CALL(Comm_rank, comm, give_rank(comm, rank)); }
int MPI_Comm_size(MPI_Comm comm, int *size) { CALL(Comm_size, comm, give_size(comm, size)); }
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy) { CALL(Comm_dup, comm, duplicate(comm, copy)); }
int MPI_Comm_free(MPI_Comm *comm) { CALL(Comm_free, MPI_COMM_NULL, free_communicator(comm)); }

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *part) {
  CALL(Comm_split, comm, split(comm, color, key, part));
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part) {
  (void)info;
  CALL(Comm_split_type, comm, split(comm, type == MPI_COMM_TYPE_SHARED ? 0 : MPI_UNDEFINED, key, part));
}

int MPI_Comm_compare(MPI_Comm one, MPI_Comm other, int *result) {
  CALL(Comm_compare, one, compare(one, other, result));
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
  CALL(Comm_set_errhandler, comm, set_handler(comm, handler));
}

int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler) {
  CALL(Comm_get_errhandler, comm, (*handler = comm->handler, MPI_SUCCESS));
}

int MPI_Comm_set_name(MPI_Comm comm, const char *name) {
  CALL(Comm_set_name, comm, (snprintf(comm->name, sizeof comm->name, "%s", name), MPI_SUCCESS));
}

int MPI_Comm_get_name(MPI_Comm comm, char *name, int *length) {
  CALL(Comm_get_name, comm, (*length = snprintf(name, MPI_MAX_OBJECT_NAME, "%s", comm->name), MPI_SUCCESS));
}
