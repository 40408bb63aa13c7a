/* SPDX-License-Identifier: Apache-2.0 */
/* Discrete-ordinates transport, as SNAP does: wavefronts from all corners of a box of cells that is cut along y and z,
 * long chains of dependent arithmetic with branches that depend on data.
 *
 *     snap [nx ny nz [chunk [angles [groups [iterations]]]]]      cells of a rank, cells along x in a message, ...
 *
 * What the sources emit must be what collides and what leaves the box, which is printed and checked. */
#include <math.h>
#include <stdlib.h>

#include <mpi.h>

#include "manyscale.h"
#include "programs.h"

static int nx, ny, nz, chunk, angles, groups, iterations, rank, sizes[2], place[2];
static double *total, *scatter, *source, *flux, *previous; /* of each cell; flux for each group too */
static double *from_x, *from_y, *from_z;                   /* what flows into the cells that come next */
static double cosine[3][64], weight;
static double leaked, collided, emitted; /* in the last iteration */

static int cell_at(int x, int y, int z) { return (z * ny + y) * nx + x; }

/* One angle in one cell: the flux within, from what flows in through three sides; what flows out replaces it. Where
 * that would be negative it is set to zero, and the balance is solved again without it. */
static double solve(double q, double sigma, const double c[3], double *flow[3]) {
  int fixed[3] = {0, 0, 0}, again = 1;
  double psi = 0.0;
  while (again) {
    double above = q, below = sigma;
    for (int axis = 0; axis < 3; ++axis) {
      above += (fixed[axis] ? 1.0 : 2.0) * c[axis] * *flow[axis];
      if (!fixed[axis]) below += 2.0 * c[axis];
    }
    psi = above / below;
    again = 0;
    for (int axis = 0; axis < 3; ++axis)
      if (!fixed[axis] && 2.0 * psi < *flow[axis]) again = fixed[axis] = 1;
  }
  for (int axis = 0; axis < 3; ++axis) *flow[axis] = fixed[axis] ? 0.0 : 2.0 * psi - *flow[axis];
  return psi;
}

/* The cells of a chunk along x, in the direction of the wavefront. */
static void sweep_chunk(int group, int first, const int way[3]) {
  for (int z = 0; z < nz; ++z)
    for (int y = 0; y < ny; ++y)
      for (int step = 0; step < chunk; ++step) {
        const int at[3] = {way[0] > 0 ? first + step : nx - 1 - first - step, way[1] > 0 ? y : ny - 1 - y,
                           way[2] > 0 ? z : nz - 1 - z};
        const int cell = cell_at(at[0], at[1], at[2]);
        const double sigma = total[cell] * (1.0 + 0.25 * group);
        const double q = source[cell] + scatter[cell] * previous[(long)group * nx * ny * nz + cell];
        double sum = 0.0;
        for (int angle = 0; angle < angles; ++angle) {
          const double c[3] = {cosine[0][angle], cosine[1][angle], cosine[2][angle]};
          double *flow[3] = {&from_x[(z * ny + y) * angles + angle], &from_y[(z * chunk + step) * angles + angle],
                             &from_z[(y * chunk + step) * angles + angle]};
          sum += weight * solve(q, sigma, c, flow);
        }
        flux[(long)group * nx * ny * nz + cell] += sum;
        collided += sigma * sum;
        emitted += weight * angles * q;
      }
}

/* Passes on what flows through a side of the box. Where a wavefront leaves the box of all ranks it is lost; where it
 * enters, nothing flows in. All ranks make the same calls. */
static void receive(double *side, int count, int axis, int way) {
  const int from = place[axis] - way, stride = axis == 0 ? sizes[1] : 1;
  const int outside = from < 0 || from >= sizes[axis];
  MPI_Recv(side, count, MPI_DOUBLE, outside ? MPI_PROC_NULL : rank - way * stride, axis, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  if (outside)
    for (int index = 0; index < count; ++index) side[index] = 0.0;
}

static void send(const double *side, int count, int axis, int way) {
  const int to = place[axis] + way, stride = axis == 0 ? sizes[1] : 1;
  const int outside = to < 0 || to >= sizes[axis];
  if (outside)
    for (int index = 0; index < count; ++index) leaked += weight * cosine[1 + axis][index % angles] * side[index];
  MPI_Send(side, count, MPI_DOUBLE, outside ? MPI_PROC_NULL : rank + way * stride, axis, MPI_COMM_WORLD);
}

static void sweep(int group, const int way[3]) {
  for (int index = 0; index < nz * ny * angles; ++index) from_x[index] = 0.0;
  for (int first = 0; first < nx; first += chunk) {
    MANYSCALE_BEGIN("receive");
    receive(from_y, chunk * nz * angles, 0, way[1]);
    receive(from_z, chunk * ny * angles, 1, way[2]);
    MANYSCALE_END("receive");
    sweep_chunk(group, first, way);
    MANYSCALE_BEGIN("send");
    send(from_y, chunk * nz * angles, 0, way[1]);
    send(from_z, chunk * ny * angles, 1, way[2]);
    MANYSCALE_END("send");
  }
  for (int index = 0; index < nz * ny * angles; ++index) leaked += weight * cosine[0][index % angles] * from_x[index];
}

static void set_up(void) {
  const long cells = (long)nx * ny * nz;
  total = zeros(cells, sizeof(double));
  scatter = zeros(cells, sizeof(double));
  source = zeros(cells, sizeof(double));
  flux = zeros(cells * groups, sizeof(double));
  previous = zeros(cells * groups, sizeof(double));
  from_x = zeros((long)ny * nz * angles, sizeof(double));
  from_y = zeros((long)chunk * nz * angles, sizeof(double));
  from_z = zeros((long)chunk * ny * angles, sizeof(double));
  for (long cell = 0; cell < cells; ++cell) {
    const double chance = scattered(cell + cells * rank);
    total[cell] = 0.5 + 4.0 * chance;
    scatter[cell] = 0.4 * chance;
    source[cell] = chance > 0.6 ? 1.0 : 0.01;
  }
  weight = 1.0 / (8.0 * angles);
  for (int angle = 0; angle < angles; ++angle) {
    const double up = (angle + 0.5) / angles, turn = 1.5707963267948966 * scattered(angle);
    cosine[0][angle] = up;
    cosine[1][angle] = sqrt(1.0 - up * up) * cos(turn);
    cosine[2][angle] = sqrt(1.0 - up * up) * sin(turn);
  }
}

int snap(int argc, char **argv) {
  static const int corners[4][2] = {{1, 1}, {1, -1}, {-1, 1}, {-1, -1}};
  nx = argument(argc, argv, 1, "nx", 40, 1, 100000);
  ny = argument(argc, argv, 2, "ny", 4, 1, 1000);
  nz = argument(argc, argv, 3, "nz", 4, 1, 1000);
  chunk = argument(argc, argv, 4, "the chunk", nx % 10 ? nx : 10, 1, nx);
  angles = argument(argc, argv, 5, "the number of angles", 10, 1, 64);
  groups = argument(argc, argv, 6, "the number of groups", 2, 1, 1000);
  iterations = argument(argc, argv, 7, "the number of iterations", 1, 1, 100000);
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (nx % chunk) {
    if (rank == 0) verdict(0, "snap: nx is no multiple of the chunk;", nx % chunk, 0);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  sizes[0] = sizes[1] = 0;
  MPI_Dims_create(size, 2, sizes);
  place[0] = rank / sizes[1];
  place[1] = rank % sizes[1];
  set_up();
  MANYSCALE_BEGIN("setup");
  double change = 0.0;
  MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MANYSCALE_END("setup");
  for (int iteration = 0; iteration < iterations; ++iteration) {
    double *old = previous;
    previous = flux;
    flux = old;
    for (long cell = 0; cell < (long)nx * ny * nz * groups; ++cell) flux[cell] = 0.0;
    leaked = collided = emitted = 0.0;
    for (int corner = 0; corner < 4; ++corner)
      for (int along = -1; along <= 1; along += 2)
        for (int group = 0; group < groups; ++group) {
          const int way[3] = {along, corners[corner][0], corners[corner][1]};
          sweep(group, way);
        }
    double mine = 0.0;
    for (long cell = 0; cell < (long)nx * ny * nz * groups; ++cell)
      mine = fmax(mine, fabs(flux[cell] - previous[cell]));
    MANYSCALE_BEGIN("converged");
    MPI_Allreduce(&mine, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MANYSCALE_END("converged");
  }
  double mine[3] = {emitted, collided, leaked}, sum[3];
  MANYSCALE_BEGIN("check");
  MPI_Allreduce(mine, sum, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MANYSCALE_END("check");
  const double missing = fabs(sum[0] - sum[1] - sum[2]) / sum[0];
  MPI_Finalize();
  return verdict(rank, "snap", sum[2] / sum[0], missing < 1e-10 && isfinite(change) && sum[2] > 0.0);
}
