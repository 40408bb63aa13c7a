/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of a square matrix of complex numbers whose rows are spread over the ranks: transforms of rows, a
 * transposition that every rank has a part of with every other, and both again for the columns.
 *
 *     fft2d [side [transforms]]      rows and columns, a power of two and a multiple of the ranks; how many transforms
 *
 * Two transforms mirror the matrix, which is checked number by number. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "manyscale.h"
#include "programs.h"

typedef double complex number;

static int side, rows, size, rank;
static number *data, *blocks, *arrived, *roots;
static int *mirrored; /* of each column: its bits in reverse order */

static number value_at(long row, long column) {
  const long place = 2 * (row * side + column);
  return scattered(place) - 0.5 + (scattered(place + 1) - 0.5) * I;
}

/* In place; each is divided by the square root of its length, so that nothing grows. */
static void transform_row(number *row) {
  for (int column = 0; column < side; ++column)
    if (column < mirrored[column]) {
      const number other = row[mirrored[column]];
      row[mirrored[column]] = row[column];
      row[column] = other;
    }
  for (int length = 1; length < side; length *= 2)
    for (int first = 0; first < side; first += 2 * length)
      for (int place = 0; place < length; ++place) {
        const double *root = (double *)&roots[place * (side / 2 / length)];
        double *low = (double *)&row[first + place], *high = (double *)&row[first + place + length];
        const double real = root[0] * high[0] - root[1] * high[1], imaginary = root[0] * high[1] + root[1] * high[0];
        high[0] = low[0] - real;
        high[1] = low[1] - imaginary;
        low[0] += real;
        low[1] += imaginary;
      }
  const double scale = 1.0 / sqrt(side);
  for (int column = 0; column < side; ++column) row[column] *= scale;
}

static void transpose(void) {
  for (int other = 0; other < size; ++other)
    for (int row = 0; row < rows; ++row)
      memcpy(&blocks[((long)other * rows + row) * rows], &data[(long)row * side + (long)other * rows],
             (size_t)rows * sizeof *data);
  MANYSCALE_BEGIN("transpose");
  MPI_Alltoall(blocks, 2 * rows * rows, MPI_DOUBLE, arrived, 2 * rows * rows, MPI_DOUBLE, MPI_COMM_WORLD);
  MANYSCALE_END("transpose");
  for (int row = 0; row < rows; ++row)
    for (int other = 0; other < size; ++other)
      for (int column = 0; column < rows; ++column)
        data[(long)row * side + (long)other * rows + column] = arrived[((long)other * rows + column) * rows + row];
}

static void transform(void) {
  for (int axis = 0; axis < 2; ++axis) {
    for (int row = 0; row < rows; ++row) transform_row(&data[(long)row * side]);
    transpose();
  }
}

static void set_up(void) {
  data = zeros((long)rows * side, sizeof *data);
  blocks = zeros((long)rows * side, sizeof *data);
  arrived = zeros((long)rows * side, sizeof *data);
  roots = zeros(side / 2, sizeof *data);
  mirrored = zeros(side, sizeof(int));
  for (int place = 0; place < side / 2; ++place) {
    const double angle = -6.283185307179586 * place / side;
    roots[place] = cos(angle) + sin(angle) * I;
  }
  for (int column = 0; column < side; ++column)
    for (int bit = 1; bit < side; bit *= 2) mirrored[column] = 2 * mirrored[column] + (column & bit ? 1 : 0);
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < side; ++column)
      data[(long)row * side + column] = value_at((long)rank * rows + row, column);
}

int fft2d(int argc, char **argv) {
  side = argument(argc, argv, 1, "the side", 64, 2, 65536);
  const int transforms = argument(argc, argv, 2, "the number of transforms", 2, 1, 100000);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rows = side / size;
  if (side & (side - 1) || rows * size != side) {
    if (rank == 0) verdict(0, "fft2d: the side is no power of two, or no multiple of the ranks;", side, 0);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  set_up();
  double wrong = 0.0, worst;
  MANYSCALE_BEGIN("setup");
  MPI_Allreduce(&wrong, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MANYSCALE_END("setup");
  for (int count = 0; count < transforms; ++count) transform();
  if (transforms % 2) transform();
  /* Two transforms change the sign of all indices, four change nothing. */
  const int mirror = (transforms + 1) / 2 % 2;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < side; ++column) {
      const long there = (long)rank * rows + row;
      const number expected = mirror ? value_at((side - there) % side, (side - column) % side) : value_at(there, column);
      wrong = fmax(wrong, cabs(data[(long)row * side + column] - expected));
    }
  MANYSCALE_BEGIN("check");
  MPI_Allreduce(&wrong, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MANYSCALE_END("check");
  MPI_Finalize();
  /* The error itself depends on the processor's rounding; that it is small does not. */
  return verdict(rank, "fft2d", side, worst < 1e-13 * (1 + transforms));
}
