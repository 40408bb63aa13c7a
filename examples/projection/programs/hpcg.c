/* SPDX-License-Identifier: Apache-2.0 */
/* Conjugate gradients with a multigrid preconditioner on a 27-point stencil, as HPCG does: bound by memory, halos
 * exchanged with up to 26 neighbours, sums over all ranks.
 *
 *     hpcg [nx ny nz [levels [iterations]]]      points of a rank, levels of the multigrid, iterations
 *
 * The right side is chosen so that the solution is 1 everywhere; how far it is from that is printed and checked, and
 * that the residual is what the method believes; the product with the matrix is compared with one without messages. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "manyscale.h"
#include "programs.h"

enum { STENCIL = 27, MOST_LEVELS = 8 };

/* A box of points and what of its neighbours' points is next to it. */
struct level {
  int n[3];           /* points along x, y, z */
  int rows;           /* n[0] * n[1] * n[2] */
  int *columns;       /* STENCIL for each row; -1 where the box of all ranks ends */
  double *values;     /* STENCIL for each row */
  double *diagonal;   /* of each row */
  int count[STENCIL]; /* points that go to each neighbour, and come from it */
  int first[STENCIL]; /* where those from it begin, after the rows */
  int *sent[STENCIL]; /* which points go to it */
  double *packed;     /* what is sent */
  int halo;           /* points of all neighbours */
  double *x, *right, *product;
};

static int neighbours[STENCIL]; /* ranks, or MPI_PROC_NULL; number 13 is this rank */
static int place[3];            /* of this rank among all */
static struct level all[MOST_LEVELS];
static int levels;

/* The numbers of neighbours and of nonzeros count x fastest, from -1 to 1 along each axis. */
static void offset(int number, int into[3]) {
  into[0] = number % 3 - 1;
  into[1] = number / 3 % 3 - 1;
  into[2] = number / 9 - 1;
}

static void find_neighbours(int rank, int size) {
  int made[3] = {0, 0, 0};
  MPI_Dims_create(size, 3, made);
  const int sizes[3] = {made[2], made[1], made[0]}; /* neighbours along x have neighbouring numbers */
  place[2] = rank / (sizes[1] * sizes[0]);
  place[1] = rank / sizes[0] % sizes[1];
  place[0] = rank % sizes[0];
  for (int number = 0; number < STENCIL; ++number) {
    int step[3], inside = number != 13, other = 0;
    offset(number, step);
    for (int axis = 2; axis >= 0; --axis) {
      const int there = place[axis] + step[axis];
      inside = inside && there >= 0 && there < sizes[axis];
      other = other * sizes[axis] + there;
    }
    neighbours[number] = inside ? other : MPI_PROC_NULL;
  }
}

/* The points of a box that are next to a neighbour, in the order in which that neighbour keeps them. */
static void list_border(struct level *box, int number, int next) {
  int step[3], low[3], high[3], count = 0;
  offset(number, step);
  for (int axis = 0; axis < 3; ++axis) {
    low[axis] = step[axis] > 0 ? box->n[axis] - 1 : 0;
    high[axis] = step[axis] < 0 ? 1 : box->n[axis];
  }
  const int most = (high[0] - low[0]) * (high[1] - low[1]) * (high[2] - low[2]);
  box->first[number] = next;
  box->count[number] = neighbours[number] == MPI_PROC_NULL ? 0 : most;
  box->sent[number] = zeros(box->count[number], sizeof(int));
  if (box->count[number] == 0) return;
  for (int z = low[2]; z < high[2]; ++z)
    for (int y = low[1]; y < high[1]; ++y)
      for (int x = low[0]; x < high[0]; ++x) box->sent[number][count++] = (z * box->n[1] + y) * box->n[0] + x;
}

/* Where the value of a point is that may be in a neighbour's box; -1 if there is no such point. */
static int column_of(const struct level *box, const int at[3]) {
  int number = 0, scale = 1, within[3], extent[3];
  for (int axis = 0; axis < 3; ++axis, scale *= 3) {
    const int side = at[axis] < 0 ? 0 : at[axis] < box->n[axis] ? 1 : 2;
    number += side * scale;
    within[axis] = side == 1 ? at[axis] : 0;
    extent[axis] = side == 1 ? box->n[axis] : 1;
  }
  const int place = (within[2] * extent[1] + within[1]) * extent[0] + within[0];
  if (number == 13) return place;
  return neighbours[number] == MPI_PROC_NULL ? -1 : box->first[number] + place;
}

static void make_level(struct level *box, const int n[3]) {
  memcpy(box->n, n, sizeof box->n);
  box->rows = n[0] * n[1] * n[2];
  for (int number = 0; number < STENCIL; ++number) {
    list_border(box, number, box->rows + box->halo);
    box->halo += box->count[number];
  }
  box->columns = zeros((long)box->rows * STENCIL, sizeof(int));
  box->values = zeros((long)box->rows * STENCIL, sizeof(double));
  box->diagonal = zeros(box->rows, sizeof(double));
  box->packed = zeros(box->halo, sizeof(double));
  box->x = zeros(box->rows + box->halo, sizeof(double));
  box->right = zeros(box->rows, sizeof(double));
  box->product = zeros(box->rows, sizeof(double));
  for (int row = 0; row < box->rows; ++row)
    for (int number = 0; number < STENCIL; ++number) {
      int at[3] = {row % n[0], row / n[0] % n[1], row / n[0] / n[1]}, step[3];
      offset(number, step);
      for (int axis = 0; axis < 3; ++axis) at[axis] += step[axis];
      const int column = column_of(box, at);
      /* A point that does not exist counts nothing; its column is any. */
      box->columns[row * STENCIL + number] = column < 0 ? row : column;
      box->values[row * STENCIL + number] = column < 0 ? 0.0 : number == 13 ? 26.0 : -1.0;
      if (number == 13) box->diagonal[row] = 26.0;
    }
}

/* All ranks call for all 26 neighbours, so that they all call alike; nothing goes to those that do not exist. `site`
 * names the place in the program. */
static void exchange(struct level *box, double *x, const char *site) {
  MPI_Request requests[2 * STENCIL];
  int count = 0, place = 0;
  MANYSCALE_BEGIN(site);
  for (int number = 0; number < STENCIL; ++number)
    if (number != 13)
      MPI_Irecv(&x[box->first[number]], box->count[number], MPI_DOUBLE, neighbours[number], STENCIL - 1 - number,
                MPI_COMM_WORLD, &requests[count++]);
  for (int number = 0; number < STENCIL; ++number)
    for (int point = 0; point < box->count[number]; ++point) box->packed[place++] = x[box->sent[number][point]];
  place = 0;
  for (int number = 0; number < STENCIL; ++number)
    if (number != 13) {
      MPI_Isend(&box->packed[place], box->count[number], MPI_DOUBLE, neighbours[number], number, MPI_COMM_WORLD,
                &requests[count++]);
      place += box->count[number];
    }
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  MANYSCALE_END(site);
}

static void multiply(struct level *box, double *x, double *result, const char *site) {
  exchange(box, x, site);
  for (int row = 0; row < box->rows; ++row) {
    const int *columns = &box->columns[row * STENCIL];
    const double *values = &box->values[row * STENCIL];
    double sum = 0.0;
    for (int number = 0; number < STENCIL; ++number) sum += values[number] * x[columns[number]];
    result[row] = sum;
  }
}

static void relax(const struct level *box, const double *right, double *x, int row) {
  const int *columns = &box->columns[row * STENCIL];
  const double *values = &box->values[row * STENCIL];
  double sum = right[row];
  for (int number = 0; number < STENCIL; ++number) sum -= values[number] * x[columns[number]];
  x[row] += sum / box->diagonal[row];
}

/* Symmetric Gauss-Seidel: all rows forwards, then backwards. */
static void smooth(struct level *box, const double *right, double *x) {
  exchange(box, x, "halo");
  for (int row = 0; row < box->rows; ++row) relax(box, right, x, row);
  for (int row = box->rows - 1; row >= 0; --row) relax(box, right, x, row);
}

static int finer_row(const struct level *coarse, int row) {
  const int x = row % coarse->n[0], y = row / coarse->n[0] % coarse->n[1], z = row / coarse->n[0] / coarse->n[1];
  return (2 * z * 2 * coarse->n[1] + 2 * y) * 2 * coarse->n[0] + 2 * x;
}

/* One cycle of the multigrid: an approximate solution of the level's system, from zero. */
static void multigrid(int number, const double *right, double *x) {
  struct level *box = &all[number];
  memset(x, 0, (size_t)(box->rows + box->halo) * sizeof *x);
  smooth(box, right, x);
  if (number + 1 == levels) return;
  struct level *coarse = box + 1;
  multiply(box, x, box->product, "halo");
  for (int row = 0; row < coarse->rows; ++row) {
    const int fine = finer_row(coarse, row);
    coarse->right[row] = right[fine] - box->product[fine];
  }
  multigrid(number + 1, coarse->right, coarse->x);
  for (int row = 0; row < coarse->rows; ++row) x[finer_row(coarse, row)] += coarse->x[row];
  smooth(box, right, x);
}

static double dot(const double *left, const double *right, int count, const char *site) {
  double mine = 0.0, sum;
  for (int row = 0; row < count; ++row) mine += left[row] * right[row];
  MANYSCALE_BEGIN(site);
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MANYSCALE_END(site);
  return sum;
}

/* Each point's share of A times a vector of ones: what its row adds up to. */
static void make_right_side(const struct level *box, double *right) {
  for (int row = 0; row < box->rows; ++row)
    for (int number = 0; number < STENCIL; ++number) right[row] += box->values[row * STENCIL + number];
}

/* Whole numbers that differ from point to point of all ranks. */
static double sample(const struct level *box, const int at[3]) {
  return place[0] * box->n[0] + at[0] + 3.0 * (place[1] * box->n[1] + at[1]) + 7.0 * (place[2] * box->n[2] + at[2]);
}

/* How far the product with the matrix is from one that needs no messages. */
static double compare(struct level *box, double *x, double *product) {
  double worst = 0.0;
  for (int row = 0; row < box->rows; ++row) {
    const int at[3] = {row % box->n[0], row / box->n[0] % box->n[1], row / box->n[0] / box->n[1]};
    x[row] = sample(box, at);
  }
  multiply(box, x, product, "check halo");
  for (int row = 0; row < box->rows; ++row) {
    double sum = 0.0;
    for (int number = 0; number < STENCIL; ++number) {
      int at[3] = {row % box->n[0], row / box->n[0] % box->n[1], row / box->n[0] / box->n[1]}, step[3];
      offset(number, step);
      for (int axis = 0; axis < 3; ++axis) at[axis] += step[axis];
      sum += box->values[row * STENCIL + number] * sample(box, at);
    }
    worst = fmax(worst, fabs(sum - product[row]));
  }
  return worst;
}

int hpcg(int argc, char **argv) {
  const int n[3] = {argument(argc, argv, 1, "nx", 16, 2, 512), argument(argc, argv, 2, "ny", 16, 2, 512),
                    argument(argc, argv, 3, "nz", 16, 2, 512)};
  levels = argument(argc, argv, 4, "the number of levels", 4, 1, MOST_LEVELS);
  const int iterations = argument(argc, argv, 5, "the number of iterations", 10, 1, 100000);
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  find_neighbours(rank, size);
  for (int number = 0; number < levels; ++number) {
    const int part[3] = {n[0] >> number, n[1] >> number, n[2] >> number};
    for (int axis = 0; axis < 3; ++axis)
      if (part[axis] << number != n[axis]) {
        if (rank == 0) verdict(0, "hpcg: the points cannot be halved so often;", number, 0);
        MPI_Abort(MPI_COMM_WORLD, 2);
      }
    make_level(&all[number], part);
  }
  struct level *box = &all[0];
  const int rows = box->rows, full = rows + box->halo;
  double *x = zeros(rows, sizeof *x), *residual = zeros(rows, sizeof *x), *better = zeros(full, sizeof *x);
  double *direction = zeros(full, sizeof *x), *product = zeros(rows, sizeof *x);
  make_right_side(box, residual);
  double before = 0.0;
  const double start = dot(residual, residual, rows, "setup");
  double end = start;
  for (int step = 0; step < iterations; ++step) {
    multigrid(0, residual, better);
    const double now = dot(residual, better, rows, "dot");
    const double beta = before > 0.0 ? now / before : 0.0;
    before = now;
    for (int row = 0; row < rows; ++row) direction[row] = better[row] + beta * direction[row];
    multiply(box, direction, product, "halo");
    const double energy = dot(direction, product, rows, "dot");
    const double alpha = energy > 0.0 ? now / energy : 0.0; /* zero once it is solved exactly */
    for (int row = 0; row < rows; ++row) {
      x[row] += alpha * direction[row];
      residual[row] -= alpha * product[row];
    }
    end = dot(residual, residual, rows, "dot");
  }
  /* The residual that the method carried along, against that of its solution. */
  double wrong[3] = {0.0, 0.0, 0.0}, worst[3];
  memcpy(direction, x, (size_t)rows * sizeof *x);
  multiply(box, direction, product, "check halo");
  memset(better, 0, (size_t)rows * sizeof *x);
  make_right_side(box, better);
  for (int row = 0; row < rows; ++row) {
    wrong[0] = fmax(wrong[0], fabs(x[row] - 1.0));
    wrong[1] = fmax(wrong[1], fabs(better[row] - product[row] - residual[row]));
  }
  wrong[2] = compare(box, direction, product);
  MANYSCALE_BEGIN("check");
  MPI_Allreduce(wrong, worst, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MANYSCALE_END("check");
  const int right = worst[0] < 1.0 && worst[1] < 1e-11 && worst[2] < 1e-6 && end < start;
  MPI_Finalize();
  return verdict(rank, "hpcg", worst[0], right);
}
