/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks on a grid: the last coordinate changes fastest. */
#include <stdlib.h>

#include "internal.h"

static struct cartesian *make(int dimensions, const int sizes[], const int periods[]) {
  struct cartesian *made = msmpi_allocate(sizeof *made);
  made->dimensions = dimensions;
  made->sizes = msmpi_allocate((size_t)dimensions * sizeof(int));
  made->periods = msmpi_allocate((size_t)dimensions * sizeof(int));
  for (int axis = 0; axis < dimensions; ++axis) {
    made->sizes[axis] = sizes[axis];
    made->periods[axis] = periods[axis] != 0;
  }
  return made;
}

struct cartesian *msmpi_copy_cartesian(const struct cartesian *original) {
  return original ? make(original->dimensions, original->sizes, original->periods) : NULL;
}

void msmpi_free_cartesian(struct cartesian *cartesian) {
  if (!cartesian) return;
  free(cartesian->sizes);
  free(cartesian->periods);
  free(cartesian);
}

static int check(MPI_Comm cart) {
  const int error = msmpi_check_communicator(cart);
  if (error) return error;
  return cart->cartesian ? MPI_SUCCESS : msmpi_error(MPI_ERR_TOPOLOGY, "the communicator has no grid");
}

/* Fills in the sizes that are 0, as near to each other as the factors of `nodes` allow, the largest first. */
static int create_dims(int nodes, int dimensions, int sizes[]) {
  int rest = nodes, free_axes = 0;
  for (int axis = 0; axis < dimensions; ++axis) {
    if (sizes[axis] < 0) return msmpi_error(MPI_ERR_DIMS, "size %d of dimension %d", sizes[axis], axis);
    if (sizes[axis] == 0) {
      ++free_axes;
    } else if (rest % sizes[axis]) {
      return msmpi_error(MPI_ERR_DIMS, "%d nodes cannot be divided by the sizes given", nodes);
    } else {
      rest /= sizes[axis];
    }
  }
  if (nodes < 1) return msmpi_error(MPI_ERR_ARG, "%d nodes", nodes);
  if (free_axes == 0)
    return rest == 1 ? MPI_SUCCESS : msmpi_error(MPI_ERR_DIMS, "the sizes given do not make %d nodes", nodes);
  int *made = msmpi_allocate((size_t)free_axes * sizeof *made);
  for (int axis = 0; axis < free_axes; ++axis) made[axis] = 1;
  /* The largest prime factor goes to what is smallest yet. */
  while (rest > 1) {
    int largest = 1;
    for (int factor = 2, left = rest; left > 1; ++factor)
      for (; left % factor == 0; left /= factor) largest = factor;
    int smallest = 0;
    for (int axis = 1; axis < free_axes; ++axis)
      if (made[axis] < made[smallest]) smallest = axis;
    made[smallest] *= largest;
    rest /= largest;
  }
  for (int axis = 0; axis < dimensions; ++axis) {
    if (sizes[axis]) continue;
    int largest = 0;
    for (int other = 1; other < free_axes; ++other)
      if (made[other] > made[largest]) largest = other;
    sizes[axis] = made[largest];
    made[largest] = 0;
  }
  free(made);
  return MPI_SUCCESS;
}

static int create(MPI_Comm comm, int dimensions, const int sizes[], const int periods[], MPI_Comm *cart) {
  int error = msmpi_check_communicator(comm);
  if (error) return error;
  if (dimensions < 0) return msmpi_error(MPI_ERR_DIMS, "%d dimensions", dimensions);
  long nodes = 1;
  for (int axis = 0; axis < dimensions; ++axis) {
    if (sizes[axis] < 1) return msmpi_error(MPI_ERR_DIMS, "size %d of dimension %d", sizes[axis], axis);
    nodes *= sizes[axis];
    if (nodes > comm->size)
      return msmpi_error(MPI_ERR_DIMS, "the grid has more points than the communicator's %d ranks", comm->size);
  }
  error = msmpi_split(comm, comm->rank < nodes ? 0 : MPI_UNDEFINED, comm->rank, cart);
  if (!error && *cart != MPI_COMM_NULL) (*cart)->cartesian = make(dimensions, sizes, periods);
  return error;
}

static void coordinates_of(const struct cartesian *grid, int rank, int coordinates[], int most) {
  for (int axis = grid->dimensions - 1; axis >= 0; --axis) {
    if (axis < most) coordinates[axis] = rank % grid->sizes[axis];
    rank /= grid->sizes[axis];
  }
}

static int coords(MPI_Comm cart, int rank, int most, int coordinates[]) {
  const int error = check(cart);
  if (error) return error;
  if (rank < 0 || rank >= cart->size)
    return msmpi_error(MPI_ERR_RANK, "rank %d is not one of 0 to %d", rank, cart->size - 1);
  coordinates_of(cart->cartesian, rank, coordinates, most);
  return MPI_SUCCESS;
}

static int rank_at(MPI_Comm cart, const int coordinates[], int *rank) {
  const int error = check(cart);
  if (error) return error;
  const struct cartesian *grid = cart->cartesian;
  *rank = 0;
  for (int axis = 0; axis < grid->dimensions; ++axis) {
    int coordinate = coordinates[axis];
    if (grid->periods[axis])
      coordinate = (coordinate % grid->sizes[axis] + grid->sizes[axis]) % grid->sizes[axis];
    else if (coordinate < 0 || coordinate >= grid->sizes[axis])
      return msmpi_error(MPI_ERR_ARG, "coordinate %d of dimension %d is not on the grid", coordinate, axis);
    *rank = *rank * grid->sizes[axis] + coordinate;
  }
  return MPI_SUCCESS;
}

static int neighbour(MPI_Comm cart, int dimension, int distance) {
  const struct cartesian *grid = cart->cartesian;
  int step = 1;
  for (int axis = dimension + 1; axis < grid->dimensions; ++axis) step *= grid->sizes[axis];
  const int size = grid->sizes[dimension], here = cart->rank / step % size;
  int there = here + distance;
  if (grid->periods[dimension])
    there = (there % size + size) % size;
  else if (there < 0 || there >= size)
    return MPI_PROC_NULL;
  return cart->rank + (there - here) * step;
}

static int shift(MPI_Comm cart, int dimension, int distance, int *source, int *destination) {
  const int error = check(cart);
  if (error) return error;
  if (dimension < 0 || dimension >= cart->cartesian->dimensions)
    return msmpi_error(MPI_ERR_DIMS, "there is no dimension %d", dimension);
  *source = neighbour(cart, dimension, -distance);
  *destination = neighbour(cart, dimension, distance);
  return MPI_SUCCESS;
}

static int sub(MPI_Comm cart, const int remain[], MPI_Comm *part) {
  int error = check(cart);
  if (error) return error;
  const struct cartesian *grid = cart->cartesian;
  int *sizes = msmpi_allocate((size_t)grid->dimensions * sizeof(int));
  int *periods = msmpi_allocate((size_t)grid->dimensions * sizeof(int));
  int *here = msmpi_allocate((size_t)grid->dimensions * sizeof(int));
  coordinates_of(grid, cart->rank, here, grid->dimensions);
  int colour = 0, key = 0, kept = 0;
  for (int axis = 0; axis < grid->dimensions; ++axis) {
    if (remain[axis]) {
      key = key * grid->sizes[axis] + here[axis];
      sizes[kept] = grid->sizes[axis];
      periods[kept++] = grid->periods[axis];
    } else {
      colour = colour * grid->sizes[axis] + here[axis];
    }
  }
  error = msmpi_split(cart, colour, key, part);
  if (!error) (*part)->cartesian = make(kept, sizes, periods);
  free(sizes);
  free(periods);
  free(here);
  return error;
}

static int get(MPI_Comm cart, int most, int sizes[], int periods[], int coordinates[]) {
  const int error = check(cart);
  if (error) return error;
  const struct cartesian *grid = cart->cartesian;
  for (int axis = 0; axis < grid->dimensions && axis < most; ++axis) {
    sizes[axis] = grid->sizes[axis];
    periods[axis] = grid->periods[axis];
  }
  coordinates_of(grid, cart->rank, coordinates, most);
  return MPI_SUCCESS;
}

static int dimensions_of(MPI_Comm cart, int *dimensions) {
  const int error = check(cart);
  if (!error) *dimensions = cart->cartesian->dimensions;
  return error;
}

static int topology_of(MPI_Comm comm, int *topology) {
  const int error = msmpi_check_communicator(comm);
  if (!error) *topology = comm->cartesian ? MPI_CART : MPI_UNDEFINED;
  return error;
}

int MPI_Dims_create(int nodes, int dimensions, int sizes[]) {
  CALL(Dims_create, MPI_COMM_NULL, create_dims(nodes, dimensions, sizes));
}

int MPI_Cart_create(MPI_Comm comm, int dimensions, const int sizes[], const int periods[], int reorder,
                    MPI_Comm *cart) {
  (void)reorder;
  CALL(Cart_create, comm, create(comm, dimensions, sizes, periods, cart));
}

int MPI_Cart_coords(MPI_Comm cart, int rank, int most, int coordinates[]) {
  CALL(Cart_coords, cart, coords(cart, rank, most, coordinates));
}

int MPI_Cart_rank(MPI_Comm cart, const int coordinates[], int *rank) {
  CALL(Cart_rank, cart, rank_at(cart, coordinates, rank));
}

int MPI_Cart_shift(MPI_Comm cart, int dimension, int distance, int *source, int *destination) {
  CALL(Cart_shift, cart, shift(cart, dimension, distance, source, destination));
}

int MPI_Cart_sub(MPI_Comm cart, const int remain[], MPI_Comm *part) { CALL(Cart_sub, cart, sub(cart, remain, part)); }

int MPI_Cart_get(MPI_Comm cart, int most, int sizes[], int periods[], int coordinates[]) {
  CALL(Cart_get, cart, get(cart, most, sizes, periods, coordinates));
}

int MPI_Cartdim_get(MPI_Comm cart, int *dimensions) { CALL(Cartdim_get, cart, dimensions_of(cart, dimensions)); }
int MPI_Topo_test(MPI_Comm comm, int *topology) { CALL(Topo_test, comm, topology_of(comm, topology)); }
