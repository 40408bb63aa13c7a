/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators, grids, derived types, and errors that are returned. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "programs.h"
#include "report.h"

static void communicators(void) {
  MPI_Comm copy, part, none;
  int in_part, part_size, sum, result;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_compare(copy, MPI_COMM_WORLD, &result);
  report("dup is congruent", result == MPI_CONGRUENT);
  /* The same tag in two communicators. */
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  int one = 10 + rank, two = 20 + rank, got_one, got_two;
  MPI_Request requests[2];
  MPI_Isend(&one, 1, MPI_INT, next, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&two, 1, MPI_INT, next, 0, copy, &requests[1]);
  MPI_Recv(&got_two, 1, MPI_INT, previous, 0, copy, MPI_STATUS_IGNORE);
  MPI_Recv(&got_one, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  report("contexts", 1000 * got_one + got_two);
  MPI_Comm_free(&copy);
  report("freed", copy == MPI_COMM_NULL);

  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
  MPI_Comm_rank(part, &in_part);
  MPI_Comm_size(part, &part_size);
  report("split", 100 * in_part + part_size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, part);
  report("sum of part", sum);
  MPI_Status status;
  MPI_Sendrecv(&rank, 1, MPI_INT, (in_part + 1) % part_size, 3, &sum, 1, MPI_INT, MPI_ANY_SOURCE, 3, part, &status);
  report("ranks of part", 100 * sum + status.MPI_SOURCE);
  MPI_Comm_compare(part, MPI_COMM_WORLD, &result);
  report("part is unequal", result == (size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL));
  MPI_Comm_free(&part);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, 0, &none);
  report("undefined", none == MPI_COMM_NULL);
  if (none != MPI_COMM_NULL) MPI_Comm_free(&none);
  MPI_Comm_size(MPI_COMM_SELF, &part_size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  report("self", part_size * 100 + sum);
}

static void grids(void) {
  static const int nodes[] = {1, 2, 6, 7, 12, 24, 36, 64};
  for (int index = 0; index < 8; ++index) {
    int two[2] = {0, 0}, three[3] = {0, 0, 0};
    MPI_Dims_create(nodes[index], 2, two);
    MPI_Dims_create(nodes[index], 3, three);
    report("dims", two[0] * 10000 + two[1] * 1000 + three[0] * 100 + three[1] * 10 + three[2]);
  }
  int sizes[2] = {0, 0}, periods[2] = {1, 0}, coordinates[2], up, down, left, right, back, dimensions, topology;
  MPI_Comm grid, row;
  MPI_Dims_create(size, 2, sizes);
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &grid);
  MPI_Topo_test(grid, &topology);
  MPI_Cartdim_get(grid, &dimensions);
  MPI_Cart_coords(grid, rank, 2, coordinates);
  MPI_Cart_rank(grid, coordinates, &back);
  MPI_Cart_shift(grid, 0, 1, &up, &down);
  MPI_Cart_shift(grid, 1, 1, &left, &right);
  left = left == MPI_PROC_NULL ? 99 : left;
  right = right == MPI_PROC_NULL ? 99 : right;
  report("grid", coordinates[0] * 10 + coordinates[1] + 100 * back + 1000 * dimensions + (topology == MPI_CART));
  report("neighbours", up * 1000000L + down * 10000 + left * 100 + right);
  const int remain[2] = {0, 1};
  int row_rank, sum;
  MPI_Cart_sub(grid, remain, &row);
  MPI_Comm_rank(row, &row_rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, row);
  report("row", row_rank * 1000 + sum);
  MPI_Comm_free(&row);
  MPI_Comm_free(&grid);
}

struct particle {
  char kind;
  double position[3];
  int number;
};

static void types(void) {
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  int matrix[40][50], column[40], bytes;
  for (int i = 0; i < 40; ++i)
    for (int j = 0; j < 50; ++j) matrix[i][j] = rank * 10000 + i * 100 + j;
  MPI_Datatype columns, resized, list, record;
  MPI_Type_vector(40, 2, 50, MPI_INT, &columns);
  MPI_Type_commit(&columns);
  MPI_Aint lower, extent;
  MPI_Type_size(columns, &bytes);
  MPI_Type_get_extent(columns, &lower, &extent);
  report("vector", bytes * 100000L + lower + extent);
  int pairs[80];
  MPI_Status status;
  int count, elements;
  MPI_Sendrecv(&matrix[0][48], 1, columns, next, 1, pairs, 80, MPI_INT, previous, 1, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, columns, &count);
  MPI_Get_elements(&status, columns, &elements);
  report("columns", digest(pairs, 80) + count + elements);
  MPI_Sendrecv(pairs, 80, MPI_INT, next, 2, &matrix[0][0], 1, columns, previous, 2, MPI_COMM_WORLD, &status);
  report("into columns", digest(&matrix[0][0], 2000));
  MPI_Get_count(&status, MPI_DOUBLE_INT, &count);
  report("not whole", count == MPI_UNDEFINED);
  MPI_Type_free(&columns);

  MPI_Datatype one;
  MPI_Type_vector(40, 1, 50, MPI_INT, &one);
  MPI_Type_create_resized(one, 0, sizeof(int), &resized);
  MPI_Type_commit(&resized);
  int transposed[50][40];
  MPI_Sendrecv(matrix, 50, resized, next, 3, transposed, 2000, MPI_INT, previous, 3, MPI_COMM_WORLD, &status);
  report("transposed", digest(&transposed[0][0], 2000));
  MPI_Gather(&matrix[0][rank], 1, resized, column, 40, MPI_INT, 0, MPI_COMM_SELF);
  report("gathered column", digest(column, 40));
  MPI_Type_free(&one);
  MPI_Type_free(&resized);

  const int lengths[3] = {2, 0, 3}, displacements[3] = {5, 9, 1};
  MPI_Type_indexed(3, lengths, displacements, MPI_INT, &list);
  MPI_Type_commit(&list);
  int picked[5];
  MPI_Sendrecv(&matrix[3][0], 1, list, next, 4, picked, 5, MPI_INT, previous, 4, MPI_COMM_WORLD, &status);
  report("indexed", digest(picked, 5));
  MPI_Type_free(&list);

  const int blocks[3] = {1, 3, 1};
  const MPI_Aint offsets[3] = {offsetof(struct particle, kind), offsetof(struct particle, position),
                               offsetof(struct particle, number)};
  const MPI_Datatype of[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
  MPI_Type_create_struct(3, blocks, offsets, of, &record);
  MPI_Type_commit(&record);
  MPI_Type_size(record, &bytes);
  MPI_Type_get_extent(record, &lower, &extent);
  report("struct", bytes * 1000 + extent);
  struct particle out[700], in[700];
  memset(in, 0, sizeof in);
  for (int index = 0; index < 700; ++index)
    out[index] = (struct particle){(char)('a' + index % 26), {rank, index, rank + index}, rank * index};
  MPI_Sendrecv(out, 700, record, next, 5, in, 700, record, previous, 5, MPI_COMM_WORLD, &status);
  long sum = 0;
  for (int index = 0; index < 700; ++index)
    sum += in[index].kind * (long)in[index].position[1] + (long)in[index].position[2] - in[index].number;
  report("particles", sum);
  MPI_Type_free(&record);
}

static long class_of(int code) {
  int error_class;
  MPI_Error_class(code, &error_class);
  return error_class;
}

static void errors(void) {
  int value = 0, large[10] = {0};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  report("rank", class_of(MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD)) == MPI_ERR_RANK);
  report("tag", class_of(MPI_Send(&value, 1, MPI_INT, 0, -5, MPI_COMM_WORLD)) == MPI_ERR_TAG);
  report("count", class_of(MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD)) == MPI_ERR_COUNT);
  report("root", class_of(MPI_Bcast(&value, 1, MPI_INT, size, MPI_COMM_WORLD)) == MPI_ERR_ROOT);
  report("operation", class_of(MPI_Allreduce(&value, large, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD)) == MPI_ERR_OP);
  MPI_Request request;
  MPI_Status status;
  MPI_Irecv(&value, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request);
  MPI_Send(large, 10, MPI_INT, rank, 1, MPI_COMM_WORLD);
  report("truncated", class_of(MPI_Wait(&request, &status)) == MPI_ERR_TRUNCATE);
  MPI_Irecv(&value, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request);
  MPI_Send(large, 10, MPI_INT, rank, 1, MPI_COMM_WORLD);
  report("in status", class_of(MPI_Waitall(1, &request, &status)) == MPI_ERR_IN_STATUS);
  report("which", class_of(status.MPI_ERROR) == MPI_ERR_TRUNCATE);
  MPI_Errhandler handler;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  report("handler", handler == MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void environment(void) {
  int flag, after, length, level;
  MPI_Initialized(&flag);
  MPI_Finalized(&after);
  char name[MPI_MAX_PROCESSOR_NAME];
  MPI_Get_processor_name(name, &length);
  report("state", 10 * flag + after + (length == (int)strlen(name)) * 100);
  MPI_Query_thread(&level);
  report("threads", level >= MPI_THREAD_SINGLE);
  const double first = MPI_Wtime();
  double last = first;
  while (last == first) last = MPI_Wtime();
  report("time goes on", last > first && MPI_Wtick() > 0);
}

int groups_and_types(int argc, char **argv) {
  begin(&argc, &argv);
  communicators();
  grids();
  types();
  errors();
  environment();
  end();
  return 0;
}
