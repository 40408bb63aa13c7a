/* SPDX-License-Identifier: Apache-2.0 */
/* Every collective operation, from several roots, in place and not, with predefined and own operations. */
#include <stdlib.h>

#include "programs.h"
#include "report.h"

/* Products of 2 x 2 matrices modulo a prime: associative, not commutative. */
static void multiply(void *in, void *inout, int *count, MPI_Datatype *type) {
  (void)type;
  int *a = in, *b = inout;
  for (int index = 0; index < *count; ++index, a += 4, b += 4) {
    const long c[4] = {(long)a[0] * b[0] + (long)a[1] * b[2], (long)a[0] * b[1] + (long)a[1] * b[3],
                       (long)a[2] * b[0] + (long)a[3] * b[2], (long)a[2] * b[1] + (long)a[3] * b[3]};
    for (int i = 0; i < 4; ++i) b[i] = (int)(c[i] % 30011);
  }
}

static void broadcasts(int count) {
  int *values = malloc((size_t)count * sizeof *values + 1);
  for (int root = 0; root < size; root += 1 + size / 3) {
    for (int index = 0; index < count; ++index) values[index] = rank == root ? root * 17 + index : -1;
    MPI_Bcast(values, count, MPI_INT, root, MPI_COMM_WORLD);
    report("bcast", digest(values, count));
  }
  free(values);
}

static void reductions(int count) {
  int *mine = malloc((size_t)count * sizeof *mine), *result = calloc((size_t)count, sizeof *result);
  const MPI_Op operations[] = {MPI_MAX, MPI_MIN,  MPI_SUM, MPI_PROD, MPI_LAND,
                               MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
  for (int operation = 0; operation < 10; ++operation) {
    for (int index = 0; index < count; ++index) mine[index] = (rank * 5 + index * 3) % 7 + (operation == 7 ? 8 : 0);
    const int root = operation % size;
    MPI_Reduce(mine, result, count, MPI_INT, operations[operation], root, MPI_COMM_WORLD);
    report("reduce", rank == root ? digest(result, count) : 0);
    MPI_Allreduce(mine, result, count, MPI_INT, operations[operation], MPI_COMM_WORLD);
    report("allreduce", digest(result, count));
  }
  MPI_Allreduce(MPI_IN_PLACE, mine, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  report("allreduce in place", digest(mine, count));
  MPI_Scan(mine, result, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  report("scan", digest(result, count));
  MPI_Exscan(mine, result, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  report("exscan", rank ? digest(result, count) : 0);
  MPI_Scan(MPI_IN_PLACE, mine, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  report("scan in place", digest(mine, count));
  free(mine);
  free(result);
}

static void other_types(void) {
  const double value = 0.5 * rank + 1;
  double sum = 0;
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  report("double", (long)(sum * 4));
  const float part = (float)(rank + 2);
  float product = 0;
  MPI_Reduce(&part, &product, 1, MPI_FLOAT, MPI_MAX, 0, MPI_COMM_WORLD);
  report("float", rank == 0 ? (long)product : 0);
  struct {
    double value;
    int index;
  } best = {(rank * 3) % 5, rank}, found;
  MPI_Allreduce(&best, &found, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  report("maxloc", (long)found.value * 100 + found.index);
  MPI_Allreduce(&best, &found, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
  report("minloc", (long)found.value * 100 + found.index);
  struct {
    int value, index;
  } small = {-rank % 3, rank}, smallest;
  MPI_Allreduce(&small, &smallest, 1, MPI_2INT, MPI_MINLOC, MPI_COMM_WORLD);
  report("2int", smallest.value * 100 + smallest.index);
  const unsigned char bits = (unsigned char)(1 << rank % 8);
  unsigned char all = 0;
  MPI_Allreduce(&bits, &all, 1, MPI_UNSIGNED_CHAR, MPI_BOR, MPI_COMM_WORLD);
  report("bits", all);
  const long long large = 1LL << 40;
  long long larger = 0;
  MPI_Allreduce(&large, &larger, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  report("long long", (long)(larger >> 38));
}

static void own_operation(void) {
  MPI_Op op;
  MPI_Datatype matrix;
  MPI_Op_create(multiply, 0, &op);
  MPI_Type_contiguous(4, MPI_INT, &matrix);
  MPI_Type_commit(&matrix);
  const int mine[8] = {1, rank + 1, rank, 2, 3, 1, rank * rank, 1};
  int result[8] = {0};
  for (int root = 0; root < size; root += 2) {
    MPI_Reduce(mine, result, 2, matrix, op, root, MPI_COMM_WORLD);
    report("own reduce", rank == root ? digest(result, 8) : 0);
  }
  MPI_Allreduce(mine, result, 2, matrix, op, MPI_COMM_WORLD);
  report("own allreduce", digest(result, 8));
  MPI_Scan(mine, result, 2, matrix, op, MPI_COMM_WORLD);
  report("own scan", digest(result, 8));
  MPI_Exscan(mine, result, 2, matrix, op, MPI_COMM_WORLD);
  report("own exscan", rank ? digest(result, 8) : 0);
  MPI_Op_free(&op);
  MPI_Type_free(&matrix);
}

static void gathers(int count) {
  int *mine = malloc((size_t)(count * size) * sizeof *mine), *all = calloc((size_t)(count * size), sizeof *all);
  for (int index = 0; index < count * size; ++index) mine[index] = rank * 100 + index;
  const int root = size / 2;
  MPI_Gather(mine, count, MPI_INT, all, count, MPI_INT, root, MPI_COMM_WORLD);
  report("gather", rank == root ? digest(all, count * size) : 0);
  MPI_Allgather(mine, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD);
  report("allgather", digest(all, count * size));
  for (int index = 0; index < count; ++index) all[rank * count + index] = -rank - index;
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, count, MPI_INT, MPI_COMM_WORLD);
  report("allgather in place", digest(all, count * size));
  MPI_Scatter(mine, count, MPI_INT, all, count, MPI_INT, root, MPI_COMM_WORLD);
  report("scatter", digest(all, count));
  MPI_Alltoall(mine, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD);
  report("alltoall", digest(all, count * size));
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, count, MPI_INT, MPI_COMM_WORLD);
  report("alltoall in place", digest(all, count * size));
  MPI_Reduce_scatter_block(mine, all, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  report("reduce_scatter_block", digest(all, count));
  free(mine);
  free(all);
}

/* Rank r has r + 1 elements; between the shares are gaps. */
static void uneven(void) {
  int counts[64], displacements[64], total = 0, mine[64 * 64], all[64 * 64];
  for (int other = 0; other < size; ++other) {
    counts[other] = other + 1;
    displacements[other] = total + other;
    total += other + 2;
  }
  for (int index = 0; index < 64 * 64; ++index) mine[index] = rank * 1000 + index, all[index] = -7;
  MPI_Gatherv(mine, rank + 1, MPI_INT, all, counts, displacements, MPI_INT, 0, MPI_COMM_WORLD);
  report("gatherv", rank == 0 ? digest(all, total + size) : 0);
  MPI_Allgatherv(mine, rank + 1, MPI_INT, all, counts, displacements, MPI_INT, MPI_COMM_WORLD);
  report("allgatherv", digest(all, total));
  MPI_Scatterv(mine, counts, displacements, MPI_INT, all, rank + 1, MPI_INT, size - 1, MPI_COMM_WORLD);
  report("scatterv", digest(all, rank + 1));
  int sent[64], received[64], from[64], to[64];
  for (int other = 0; other < size; ++other) {
    sent[other] = (rank + other) % 3;
    received[other] = (rank + other) % 3;
    from[other] = to[other] = 3 * other;
  }
  MPI_Alltoallv(mine, sent, from, MPI_INT, all, received, to, MPI_INT, MPI_COMM_WORLD);
  report("alltoallv", digest(all, 3 * size));
  MPI_Reduce_scatter(mine, all, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  report("reduce_scatter", digest(all, rank + 1));
}

int collectives(int argc, char **argv) {
  begin(&argc, &argv);
  static const int counts[] = {1, 3, 5000};
  for (int index = 0; index < 3; ++index) {
    MPI_Barrier(MPI_COMM_WORLD);
    broadcasts(counts[index]);
    reductions(counts[index]);
    gathers(counts[index] > 1000 ? 1500 : counts[index]);
  }
  other_types();
  own_operation();
  uneven();
  end();
  return 0;
}
